/* Draws the figures of a page in its colours, which depend on light, dark and paper. */
(function () {
  "use strict";
  var figures = {};
  var dark = matchMedia("(prefers-color-scheme: dark)");
  /* The colours of xstream.report.plots on a dark ground. */
  var bright = {
    "#1f4e79": "#7db4e6", "#c2641f": "#f0a066", "#3a8563": "#74c79f", "#8a5aa8": "#c39bdf",
    "#8f7b14": "#d9c65a", "#5b6b7b": "#a9b7c5", "#b03a5b": "#ee88a3", "#1b8494": "#5fd0e0",
    "#a61c1c": "#f4938f", "#1c2733": "#e6ebf0", "#ffffff": "#12181f"
  };

  function themed(figure, onPaper) {
    var text = JSON.stringify(figure);
    if (dark.matches && !onPaper) {
      Object.keys(bright).forEach(function (color) {
        text = text.split('"' + color + '"').join('"' + bright[color] + '"');
      });
    }
    var found = JSON.parse(text), layout = found.layout;
    var night = dark.matches && !onPaper;
    var line = night ? "#33414f" : "#e1e7ed", ink = night ? "#e6ebf0" : "#1c2733";
    layout.paper_bgcolor = layout.plot_bgcolor = "rgba(0,0,0,0)";
    layout.font = Object.assign({}, layout.font, {color: ink});
    layout.hoverlabel = {
      bgcolor: night ? "#1d2731" : "#ffffff", bordercolor: line, font: {color: ink}
    };
    Object.keys(layout).forEach(function (name) {
      if (/^[xy]axis\d*$/.test(name)) {
        layout[name] = Object.assign(
          {gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true,
           exponentformat: "none", separatethousands: true}, layout[name]
        );
      }
    });
    return found;
  }

  function draw(name, onPaper) {
    var place = document.getElementById(name), found = themed(figures[name], onPaper);
    Plotly.react(place, found.data, found.layout, {responsive: true, displayModeBar: false});
  }

  function drawAll(onPaper) {
    Object.keys(figures).forEach(function (name) { draw(name, onPaper); });
  }

  window.figure = function (name, found) {
    figures[name] = found;
    draw(name, false);
  };

  function select(wanted) {
    document.querySelectorAll("section.test").forEach(function (section) {
      section.hidden = section.dataset.test !== wanted;
      if (!section.hidden) {
        section.querySelectorAll(".plot").forEach(function (plot) {
          if (window.Plotly && plot.data) { Plotly.Plots.resize(plot); }
        });
      }
    });
    document.querySelectorAll(".tabs button").forEach(function (button) {
      button.setAttribute("aria-selected", button.dataset.test === wanted);
    });
  }

  addEventListener("DOMContentLoaded", function () {
    var buttons = document.querySelectorAll(".tabs button");
    buttons.forEach(function (button) {
      button.addEventListener("click", function () { select(button.dataset.test); });
    });
    if (buttons.length) { select(buttons[0].dataset.test); }
  });
  dark.addEventListener("change", function () { drawAll(false); });
  addEventListener("beforeprint", function () { drawAll(true); });
  addEventListener("afterprint", function () { drawAll(false); });
})();
