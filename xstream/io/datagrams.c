#include "intake.h"
xs_intake *xs_datagrams_new(xs_manager *manager, const xs_record *record, xs_datagram_options options) { return NULL; }
