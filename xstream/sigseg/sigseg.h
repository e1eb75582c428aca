int xs_version(void);
