//go:build cgo && linux

#define _GNU_SOURCE
#include "node.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { FIRST = 128 };

int mt_node_of(const char *sys, const char *pci) {
  for (int i = 0; i < MT_NODES; i++) {
    char path[512], to[512];
    snprintf(path, sizeof path, "%s/renderD%d/device", sys, FIRST + i);
    ssize_t n = readlink(path, to, sizeof to - 1);
    if (n <= 0) continue;
    to[n] = 0;
    const char *base = strrchr(to, '/');
    if (strcmp(base ? base + 1 : to, pci) == 0) return i;
  }
  return -1;
}

// Of the kernel's interface (include/uapi/drm/amdgpu_drm.h): how many instances an
// IP block has. For JPEG that is cores; rocJPEG asks the same by libdrm.
typedef struct {
  uint64_t answer;
  uint32_t answer_bytes, query, type, pad[3];
} drm_amdgpu_info;
_Static_assert(sizeof(drm_amdgpu_info) == 32, "drm_amdgpu_info");
enum { INFO_HW_IP_COUNT = 3, HW_IP_VCN_JPEG = 8 };
#define DRM_IOCTL_AMDGPU_INFO _IOW('d', 0x45, drm_amdgpu_info)

int mt_node_cores(int node) {
  char path[64];
  snprintf(path, sizeof path, "/dev/dri/renderD%d", FIRST + node);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return -1;
  uint32_t n = 0;
  drm_amdgpu_info ask = {.answer = (uint64_t)(uintptr_t)&n, .answer_bytes = sizeof n, .query = INFO_HW_IP_COUNT, .type = HW_IP_VCN_JPEG};
  int rc = ioctl(fd, DRM_IOCTL_AMDGPU_INFO, &ask);
  close(fd);
  return rc || n > 1024 ? -1 : (int)n;
}

void mt_nodes_open(const char *fds, int count[MT_NODES]) {
  memset(count, 0, MT_NODES * sizeof *count);
  DIR *d = opendir(fds);
  if (!d) return;
  for (struct dirent *f; (f = readdir(d));) {
    char to[64];
    ssize_t n = readlinkat(dirfd(d), f->d_name, to, sizeof to - 1);
    if (n <= 0) continue;
    to[n] = 0;
    int node;
    if (sscanf(to, "/dev/dri/renderD%d", &node) == 1 && node >= FIRST && node < FIRST + MT_NODES) count[node - FIRST]++;
  }
  closedir(d);
}

int mt_nodes_newer(const int before[MT_NODES], const int after[MT_NODES], int ours) {
  int found = -1;
  for (int i = 0; i < MT_NODES; i++) {
    if (after[i] <= before[i]) continue;
    if (i != ours) return i;
    found = i;
  }
  return found;
}
