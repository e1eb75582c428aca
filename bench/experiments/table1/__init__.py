"""Table I: PASSCHAIN, STATFILTER and SILENCEFILTER, with NoSigSeg and other engines."""
