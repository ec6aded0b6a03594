/*
 * Shows the folder SOURCE at MOUNT, read only, with the latency of a network file system:
 *
 *   slowfs SOURCE MOUNT LOOKUP_US READ_US
 *
 * Before each look-up, stat, open and listing it waits LOOKUP_US microseconds, before each read READ_US. Calls wait side by
 * side, up to 512; look-ups in one folder do so, too, as NFS and Lustre have it. The kernel keeps attributes and names for
 * 3 seconds, and file contents not beyond one open. At its end it says on standard error how many reads waited at once at most.
 */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <limits.h>
#include <linux/fuse.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static char source[PATH_MAX];
static long lookup_us, read_us;
static atomic_long reads, most_reads;

static void wait_us(long us) {
  struct timespec time = {us / 1000000, us % 1000000 * 1000};
  if (us > 0) nanosleep(&time, NULL);
}

/* The path below the source, after the wait of a look-up. */
static int look_up(char *real, const char *path) {
  wait_us(lookup_us);
  return snprintf(real, PATH_MAX, "%s%s", source, path) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int slow_getattr(const char *path, struct stat *stat, struct fuse_file_info *info) {
  char real[PATH_MAX];
  (void)info;
  if (look_up(real, path) != 0) return -ENAMETOOLONG;
  return lstat(real, stat) == 0 ? 0 : -errno;
}

static int slow_readlink(const char *path, char *target, size_t size) {
  char real[PATH_MAX];
  if (look_up(real, path) != 0) return -ENAMETOOLONG;
  ssize_t length = readlink(real, target, size - 1);
  if (length < 0) return -errno;
  target[length] = 0;
  return 0;
}

static int slow_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset,
                        struct fuse_file_info *info, enum fuse_readdir_flags flags) {
  char real[PATH_MAX];
  (void)offset, (void)info, (void)flags;
  if (look_up(real, path) != 0) return -ENAMETOOLONG;
  DIR *folder = opendir(real);
  if (folder == NULL) return -errno;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    struct stat stat = {.st_ino = entry->d_ino, .st_mode = (mode_t)entry->d_type << 12};
    fill(buffer, entry->d_name, &stat, 0, 0);
  }
  closedir(folder);
  return 0;
}

static int slow_open(const char *path, struct fuse_file_info *info) {
  char real[PATH_MAX];
  if (look_up(real, path) != 0) return -ENAMETOOLONG;
  int fd = open(real, info->flags & ~O_NOFOLLOW);
  if (fd < 0) return -errno;
  info->fh = fd;
  return 0;
}

static int slow_read(const char *path, char *target, size_t size, off_t offset, struct fuse_file_info *info) {
  (void)path;
  long now = atomic_fetch_add(&reads, 1) + 1;
  for (long most = most_reads; now > most && !atomic_compare_exchange_weak(&most_reads, &most, now);) continue;
  wait_us(read_us);
  reads--;
  ssize_t bytes = pread(info->fh, target, size, offset);
  return bytes < 0 ? -errno : (int)bytes;
}

static int slow_release(const char *path, struct fuse_file_info *info) {
  (void)path;
  close(info->fh);
  return 0;
}

/*
 * libfuse answers the kernel with this. Up to 3.14 it forgets FUSE_PARALLEL_DIROPS there, though it was asked for, and the kernel
 * then looks up one name of a folder after the other. The first answer of this shape is the one to INIT.
 */
ssize_t writev(int file, const struct iovec *parts, int count) {
  static int answered = 0;
  if (!answered && count == 2 && parts[0].iov_len == sizeof(struct fuse_out_header) && parts[1].iov_len >= 24) {
    ((struct fuse_init_out *)parts[1].iov_base)->flags |= FUSE_PARALLEL_DIROPS;
    answered = 1;
  }
  return syscall(SYS_writev, file, parts, count);
}

static void *slow_init(struct fuse_conn_info *connection, struct fuse_config *config) {
  config->use_ino = 1;
  config->entry_timeout = 3;
  config->attr_timeout = 3;
  config->negative_timeout = 0;
  connection->max_background = 512;
  if (connection->capable & FUSE_CAP_PARALLEL_DIROPS) connection->want |= FUSE_CAP_PARALLEL_DIROPS;
  return NULL;
}

static const struct fuse_operations operations = {
    .init = slow_init,
    .getattr = slow_getattr,
    .readlink = slow_readlink,
    .readdir = slow_readdir,
    .open = slow_open,
    .read = slow_read,
    .release = slow_release,
};

int main(int count, char **values) {
  if (count != 5 || realpath(values[1], source) == NULL) {
    fprintf(stderr, "slowfs SOURCE MOUNT LOOKUP_US READ_US\n");
    return 2;
  }
  lookup_us = atol(values[3]);
  read_us = atol(values[4]);
  char options[] = "ro,default_permissions,fsname=slowfs,clone_fd,max_threads=512,max_idle_threads=512";
  char *arguments[] = {values[0], "-f", values[2], "-o", options, NULL};
  int status = fuse_main(5, arguments, &operations, NULL);
  fprintf(stderr, "%ld reads at once\n", (long)most_reads);
  return status;
}
