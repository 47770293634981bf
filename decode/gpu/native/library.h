// Opening a vendor's libraries at run time. They are never closed: they leave
// threads and handlers behind.
#ifndef MICROTOME_GPU_LIBRARY_H
#define MICROTOME_GPU_LIBRARY_H

#include "vendor.h"

// mt_library_open opens the first of names that can be, in dir or, when that is
// "", on the loader's path, and notes in l where it was looked for. names end with
// NULL.
void *mt_library_open(mt_library *l, const char *dir, const char *const *names);

// mt_library_soname is the name that an opened library gives itself, "" when it has
// none.
const char *mt_library_soname(void *lib);

#endif
