/* A shim in front of the C library (LD_PRELOAD): one step of writing a checkpoint goes wrong.
 *
 * Steps are the calls of write, fsync and rename on files whose path has "checkpoint" in it. What is
 * not on disk is kept track of, so that a power cut loses it: the contents of a file that was not
 * flushed, and a name in a folder that was not. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NONE, FAIL, SHORT, KILL, CUT_DATA, CUT_NAME }; /* what happens at the step */
enum { MOST = 64, LONG = 512 };

typedef struct {
    char path[LONG], before[LONG]; /* its name; the one before, until its folder is flushed */
    int flushed;
} file_state;

typedef struct {
    long step, steps;
    int mode, ignore_fsync;
    pid_t runner;
    int files;
    file_state file[MOST];
} shim;

static shim *shared;

__attribute__((constructor)) static void begin(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

void faults_arm(long step, int mode, int ignore_fsync)
{
    memset(shared, 0, sizeof *shared);
    shared->step = step;
    shared->mode = mode;
    shared->ignore_fsync = ignore_fsync;
    shared->runner = getpid();
}

long faults_steps(void) { return shared->steps; }

static int real_write(int file, const void *bytes, size_t count)
{
    static ssize_t (*call)(int, const void *, size_t);
    if (!call) call = dlsym(RTLD_NEXT, "write");
    return (int)call(file, bytes, count);
}

static int path_of(int file, char *path)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, LONG - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, "checkpoint") != NULL;
}

static file_state *state_of(const char *path)
{
    for (int i = 0; i < shared->files; i++)
        if (!strcmp(shared->file[i].path, path)) return &shared->file[i];
    if (shared->files == MOST) return NULL;
    file_state *fresh = &shared->file[shared->files++];
    strcpy(fresh->path, path);
    return fresh;
}

/* The machine goes down: what was not flushed is lost. */
static void power_cut(int names)
{
    for (int i = 0; i < shared->files; i++) {
        file_state *file = &shared->file[i];
        struct stat found;
        if (!file->flushed && !stat(file->path, &found)) {
            int cut = truncate(file->path, found.st_size / 2);
            (void)cut;
        }
        if (names && file->before[0]) syscall(SYS_renameat2, AT_FDCWD, file->path, AT_FDCWD, file->before, 0);
    }
    kill(shared->runner, SIGKILL);
    kill(getpid(), SIGKILL);
}

/* Returns what to do at this step. */
static int next_step(void)
{
    if (!shared || !shared->mode) return NONE;
    long step = __sync_add_and_fetch(&shared->steps, 1);
    if (step != shared->step) return NONE;
    if (shared->mode >= CUT_DATA) power_cut(shared->mode == CUT_NAME);
    if (shared->mode == KILL) {
        kill(shared->runner, SIGKILL);
        kill(getpid(), SIGKILL);
    }
    return shared->mode;
}

ssize_t write(int file, const void *bytes, size_t count)
{
    char path[LONG];
    if (!shared || !shared->mode || !path_of(file, path)) return real_write(file, bytes, count);
    file_state *state = state_of(path);
    if (state) state->flushed = 0;
    int mode = next_step();
    if (mode == FAIL) {
        errno = ENOSPC;
        return -1;
    }
    return real_write(file, bytes, mode == SHORT && count > 1 ? count / 2 : count);
}

static int flush(int file, const char *name)
{
    int (*call)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    char path[LONG];
    struct stat found;
    if (!shared || !shared->mode || !path_of(file, path)) return call(file);
    if (next_step() == FAIL) {
        errno = EIO;
        return -1;
    }
    if (shared->ignore_fsync) return 0;
    if (!fstat(file, &found) && S_ISDIR(found.st_mode)) {
        for (int i = 0; i < shared->files; i++) shared->file[i].before[0] = 0;
    } else {
        file_state *state = state_of(path);
        if (state) state->flushed = 1;
    }
    return call(file);
}

int fsync(int file) { return flush(file, "fsync"); }
int fdatasync(int file) { return flush(file, "fdatasync"); }

int rename(const char *from, const char *to)
{
    static int (*call)(const char *, const char *);
    if (!call) call = dlsym(RTLD_NEXT, "rename");
    if (!shared || !shared->mode || !strstr(from, "checkpoint")) return call(from, to);
    if (next_step() == FAIL) {
        errno = ENOSPC;
        return -1;
    }
    char whole[LONG], target[LONG];
    if (realpath(from, whole)) {
        file_state *state = state_of(whole);
        int status = call(from, to);
        if (!status && state && realpath(to, target)) {
            strcpy(state->before, whole);
            strcpy(state->path, target);
        }
        return status;
    }
    return call(from, to);
}
