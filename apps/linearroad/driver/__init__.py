"""`xstream linearroad drive`: rows to any system over the network, at their times, and its answers.

`traffic` reads, copies and orders rows, `sender` sends them, `receiver` takes the answers, and
`job` connects these to a run with results.
"""
