"""The benchmarks and experiments of the XStream paper, and profiles of any query.

recording       nine seconds of somebody counting from one to five, made here; WAV files
queries         the benchmarks' queries: with segments, and with one tuple a sample
trials          measuring contenders in turns; best and spread
report          what a benchmark found: results, figures, floors
peers           the same work on other engines, each in a process of its own
table1, enginebench, ratecontrol, pythonop      the benchmarks
application     applications as benchmarks, named by entry points
experiment      experiments: folders, tidy tables, means with confidence intervals
profile         a query under every memory manager, scheduler and batch
subjects        what can be profiled: applications, and the query of any script
"""
