// The DRM render nodes of AMD's GPUs: which one a GPU has, what the kernel's driver
// says there, and which ones this process has open.
#ifndef MICROTOME_GPU_NODE_H
#define MICROTOME_GPU_NODE_H

#include <stdint.h>

enum { MT_NODES = 64 }; // renderD128 and on

// mt_node_of is the node of the GPU at a PCI address, from 0 on, -1 when there is
// none. sys is the folder of DRM devices, /sys/class/drm.
int mt_node_of(const char *sys, const char *pci);

// mt_node_cores is how many cores decode JPEG there, -1 when the kernel does not say.
int mt_node_cores(int node);

// mt_nodes_open counts the open files of each node. fds is /proc/self/fd.
void mt_nodes_open(const char *fds, int count[MT_NODES]);

// mt_nodes_newer is the node, other than ours, of which more files are open than
// before; ours when it is that one; -1 when it is none. ours may be -1.
int mt_nodes_newer(const int before[MT_NODES], const int after[MT_NODES], int ours);

#endif
