"""`xstream linearroad compare`: Linear Road on other systems, on the same machine and traffic.

`system` says what a system is and `registry` lists them; `process` starts and stops one and
measures it; `cuts` makes the traffic for an L; `probe` drives one system with one L; `job` searches
for the largest L of each; `page` shows the results. Each system has a folder of its own with its
program, which is driven over the network like any other (docs/linear-road-peers.md).
"""
