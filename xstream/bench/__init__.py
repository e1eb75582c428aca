"""The benchmarks of the XStream paper, Table I, EngineBench and Figure 7: `xstream bench`.

recording       nine seconds of somebody counting from one to five, made here; WAV files
queries         the benchmarks' queries: with segments, and with one tuple a sample
trials          measuring contenders in turns; best and spread
report          what a benchmark found: results, figures, floors
peers           the same work on other engines, each in a process of its own
table1, enginebench, ratecontrol, pythonop      the benchmarks
"""
