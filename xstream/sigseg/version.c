int xs_version(void) { return 1; }
