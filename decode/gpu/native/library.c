//go:build cgo && linux

#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

// What is wrong with a library that is there says more than that another is not.
void *mt_library_open(mt_library *l, const char *dir, const char *const *names) {
  static const char absent[] = ": cannot open shared object file: No such file";
  char path[512];
  int told = *l->why && !l->absent; // of a folder before
  for (; *names; names++) {
    int n = snprintf(path, sizeof path, "%s%s%s", dir, *dir ? "/" : "", *names);
    size_t used = strlen(l->looked);
    snprintf(l->looked + used, sizeof l->looked - used, "%s%s", used ? "\n" : "", path);
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    struct link_map *m;
    if (lib) {
      l->why[0] = l->absent = 0;
      snprintf(l->file, sizeof l->file, "%s", dlinfo(lib, RTLD_DI_LINKMAP, &m) ? path : m->l_name);
      return lib;
    }
    const char *said = dlerror();
    int there = strncmp(said, path, n) != 0 || strncmp(said + n, absent, sizeof absent - 1) != 0;
    if ((there && !told) || !*l->why) snprintf(l->why, sizeof l->why, "%s", said);
    told |= there;
    l->absent = !told;
  }
  return NULL;
}

const char *mt_library_soname(void *lib) {
  struct link_map *m;
  if (dlinfo(lib, RTLD_DI_LINKMAP, &m)) return "";
  const char *strings = NULL;
  ElfW(Xword) at = 0;
  int named = 0;
  for (const ElfW(Dyn) *d = m->l_ld; d->d_tag != DT_NULL; d++) {
    if (d->d_tag == DT_STRTAB) strings = (const char *)d->d_un.d_ptr; // glibc has made it an address
    if (d->d_tag == DT_SONAME) {
      at = d->d_un.d_val;
      named = 1;
    }
  }
  if (!strings || !named) return "";
  if ((ElfW(Addr))strings < m->l_addr) strings += m->l_addr; // musl has not
  return strings + at;
}
