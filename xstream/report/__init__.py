"""Self-contained HTML pages, with plots that need no network.

page            the frame that all pages share: title, tables, text, plots
plots           lines, bars and boxes with confidence intervals
heat            heat maps
static          the style sheet, the scripts and the library for plots
profile_page    `xstream profile --html`
experiment_page `xstream experiment`
gathered        `xstream report`: all of them on one page
"""
