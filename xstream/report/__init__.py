"""Self-contained HTML pages, with plots that need no network.

page            the frame that all pages share: title, tables, text, plots
plots           lines and bars with confidence intervals
profile_page    `xstream profile --html`
experiment_page `xstream experiment`
gathered        `xstream report`: all of them on one page
"""
