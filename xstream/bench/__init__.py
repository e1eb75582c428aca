"""The benchmarks and experiments of the XStream paper, and profiles of any query.

recording       a generated recording of a voice that counts from one to five; sound files
queries         the queries of the benchmarks: with segments, and with one tuple per sample
trials          measures contenders in turns; best trial and spread
report          results of a benchmark: trials, figures, targets
peers           the same work on other engines, each in its own process
table1, enginebench, ratecontrol, pythonop      the benchmarks
application     benchmarks of applications, registered as entry points
experiment      experiments: folders, tidy tables, means with confidence intervals
profile         a query under several memory managers, schedulers and burst sizes
subjects        what can be profiled: applications, and the query of any script
"""
