/*
 * A simulated CUDA driver: the functions that @shardtool/cuda calls, over the memory of the host, on one thread. It shows
 * that the calls come in a right order, and nothing about a GPU or its speed.
 *
 * Work is done late: each cuEventQuery advances every stream by one piece. So memory that is changed too early is seen.
 * - A copy that was given to a stream must come from page-locked memory, which must not change until the copy is done.
 * - Two accesses to the same device memory, of which one writes, must be ordered: by their stream, by an event that the later
 *   stream waited for, or by this thread having seen the earlier one's event. Each stream keeps a vector clock for that.
 * - Kernels cannot be run from PTX here. By its name a kernel of kernel.ts is replaced by the same arithmetic in C; the tests
 *   interpret the PTX itself elsewhere. `shardtool_spin` takes its time, and `shardtool_trap` loses the context.
 * - Time is made up, so that what is computed of it can be tested: a stream does one thing after the other, a copy takes
 *   0.1 ms a megabyte and a kernel nothing, and what is given to a stream begins after what this thread has seen end.
 * What is wrong is kept in words (sim_failure), and every call fails from then on.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_CONTEXT = 201, INVALID_PTX = 218,
  INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, LAUNCH_FAILED = 719, NOT_SUPPORTED = 801, UNKNOWN = 999
};
enum { STREAMS = 8, EVENTS = 256, RANGES = 1024, PIECES = 4096, ACCESSES = 8192, MODULES = 16, FAILING = 4, ALIGNMENT = 256 };
enum { CONTEXT = 0xc0de, STREAM_BASE = 0x5000, EVENT_BASE = 0xe000, MODULE_BASE = 0x30000 };

typedef uint64_t Word;
typedef struct { Word source, target; uint32_t pixels, plane; float scale[3], bias[3]; const char *name; } Launch;
typedef enum { COPY, KERNEL, USE, RECORD, WAIT } Kind;
typedef struct { Kind kind; Word target, source; size_t bytes; uint64_t sum; int event; int version; Launch launch;
  double takes, earliest; int loses; } Piece;
typedef struct { int exists; uint64_t clock[STREAMS]; Piece *pieces; int first, count; double now; } Stream;
typedef struct { int exists, timed, recorded, done; uint64_t clock[STREAMS]; double at; } Event;
typedef struct { Word address; size_t bytes; int kind; } Range; /* kind: 0 free, 'd' device, 'h' from the driver, 'r' registered */
typedef struct { Word from, to; int stream; uint64_t at; int writes; } Access;

static int initialised, retained, depth, devices = 1;
static Stream streams[STREAMS];
static Event events[EVENTS];
static Range ranges[RANGES];
static Access accesses[ACCESSES];
static int access_count;
static char *modules[MODULES];
static uint64_t host_clock[STREAMS];
static size_t memory = 1 << 30, memory_left = 1 << 30, calls_length;
static double host_now; /* milliseconds */
static char failure[512], calls[1 << 16];
static struct { char call[64]; int after, code; } failing[FAILING];
static int is_lost;

static int wrong(const char *format, ...) {
  va_list list;
  if (failure[0] == 0) {
    va_start(list, format);
    vsnprintf(failure, sizeof failure, format, list);
    va_end(list);
  }
  return UNKNOWN;
}

/* What every call begins with; `inside` where it needs a current context. */
static int enter(const char *name, int inside) {
  if (strcmp(name, "cuEventQuery") && strncmp(name, "cuCtx", 5) && calls_length + strlen(name) + 2 < sizeof calls)
    calls_length += (size_t)sprintf(calls + calls_length, "%s\n", name);
  for (int i = 0; i < FAILING; i++) {
    int any = !strcmp(failing[i].call, "*");
    if ((!any && strcmp(failing[i].call, name)) || failing[i].after-- > 0) continue;
    is_lost |= any;
    failing[i].call[0] = 0;
    return failing[i].code;
  }
  if (is_lost) return LAUNCH_FAILED;
  if (!initialised) return NOT_INITIALIZED;
  if (inside && depth == 0) return INVALID_CONTEXT;
  return failure[0] ? UNKNOWN : OK;
}
/* The last call was one for this stream, and this event. */
static void note(Stream *stream, Event *event) {
  if (calls_length + 48 > sizeof calls) return;
  calls_length += (size_t)sprintf(calls + calls_length - 1, " stream %d", (int)(stream - streams)) - 1;
  if (event) calls_length += (size_t)sprintf(calls + calls_length, " event %d", (int)(event - events));
  calls_length += (size_t)sprintf(calls + calls_length, "\n");
}
#define ENTER(inside) do { int code_ = enter(__func__, inside); if (code_) return code_; } while (0)

static Stream *stream_of(Word handle) {
  Word i = handle == 0 ? 0 : handle - STREAM_BASE;
  return i < STREAMS && (i == 0 || streams[i].exists) ? &streams[i] : NULL;
}
static Event *event_of(Word handle) {
  Word i = handle - EVENT_BASE;
  return i < EVENTS && events[i].exists ? &events[i] : NULL;
}
static void merge(uint64_t *into, const uint64_t *from) {
  for (int i = 0; i < STREAMS; i++) if (from[i] > into[i]) into[i] = from[i];
}
static Range *range_within(Word address, size_t bytes, const char *kinds) {
  for (int i = 0; i < RANGES; i++)
    if (ranges[i].kind && strchr(kinds, ranges[i].kind) && address >= ranges[i].address &&
        address + bytes <= ranges[i].address + ranges[i].bytes) return &ranges[i];
  return NULL;
}
static Range *range_at(Word address, int kind) {
  for (int i = 0; i < RANGES; i++) if (ranges[i].kind == kind && ranges[i].address == address) return &ranges[i];
  return NULL;
}
static int add_range(Word address, size_t bytes, int kind) {
  for (int i = 0; i < RANGES; i++)
    if (!ranges[i].kind) { ranges[i] = (Range){address, bytes, kind}; return OK; }
  return wrong("too many ranges of memory");
}

static uint64_t sum_of(Word address, size_t bytes) {
  const unsigned char *data = (const unsigned char *)(uintptr_t)address;
  uint64_t sum = 1469598103934665603u;
  size_t i = 0;
  for (uint64_t word; i + 8 <= bytes; i += 8) memcpy(&word, data + i, 8), sum = (sum ^ word) * 1099511628211u;
  for (; i < bytes; i++) sum = (sum ^ data[i]) * 1099511628211u;
  return sum;
}

/* The work of a stream touches memory; it must be ordered with what touched it before. */
static int touch(Stream *stream, Word address, size_t bytes, int writes) {
  int own = (int)(stream - streams), kept = 0;
  for (int i = 0; i < access_count; i++) {
    Access a = accesses[i];
    if (a.at <= host_clock[a.stream]) continue;
    accesses[kept++] = a;
    if (a.to <= address || address + bytes <= a.from || !(a.writes || writes)) continue;
    if (stream->clock[a.stream] < a.at)
      return wrong("stream %d %s device memory that stream %d may still %s", own, writes ? "writes" : "reads", a.stream,
                   a.writes ? "write" : "read");
  }
  access_count = kept;
  if (kept == ACCESSES) return wrong("too many accesses under way");
  accesses[access_count++] = (Access){address, address + bytes, own, stream->clock[own], writes};
  return OK;
}
/* Nothing that was given to a stream uses the memory any more, as far as this thread knows. */
static int is_idle(Word address, size_t bytes) {
  for (int i = 0; i < access_count; i++) {
    Access a = accesses[i];
    if (a.at > host_clock[a.stream] && a.from < address + bytes && address < a.to) return 0;
  }
  return 1;
}

static int push(Stream *stream, Piece piece) {
  if (stream->pieces == NULL) stream->pieces = malloc(PIECES * sizeof(Piece));
  if (stream->count == PIECES) return wrong("too much work in a stream");
  piece.earliest = host_now;
  stream->pieces[(stream->first + stream->count++) % PIECES] = piece;
  return OK;
}
static void begin(Stream *stream) {
  merge(stream->clock, host_clock);
  stream->clock[stream - streams]++;
}

/* IEEE 754 binary16 of a float32, to the nearest, ties to even. */
static uint16_t half_of(float value) {
  uint32_t bits, sign, rest;
  memcpy(&bits, &value, 4);
  sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  if (bits >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
  if (bits >= 0x38800000) return (uint16_t)(sign | (bits - 0x38000000 + 0xfff + (bits >> 13 & 1)) >> 13);
  int shift = 126 - (int)(bits >> 23);
  if (shift > 24) return (uint16_t)sign;
  uint32_t whole = bits >> 23 ? (bits & 0x7fffff) | 0x800000 : bits & 0x7fffff, kept = whole >> shift;
  rest = whole & ((1u << shift) - 1);
  if (rest > 1u << (shift - 1) || (rest == 1u << (shift - 1) && (kept & 1))) kept++;
  return (uint16_t)(sign | kept);
}
static uint16_t bfloat_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  uint32_t rest = bits & 0xffff, kept = bits >> 16;
  return (uint16_t)(kept + (rest > 0x8000 || (rest == 0x8000 && (kept & 1))));
}
/* A kernel's name is where it stands in the module's text, and ends with a parenthesis. */
static int has(const char *name, const char *part) {
  const char *at = strstr(name, part);
  return at && at < name + strcspn(name, "(");
}
static int is_named(const char *name, const char *whole) {
  return strcspn(name, "(") == strlen(whole) && !strncmp(name, whole, strlen(whole));
}
static int value_bytes(const char *name) {
  return has(name, "float32") ? 4 : has(name, "float16") ? 2 : 1; /* bfloat16, too */
}
static void run_kernel(const Launch *l) {
  int nchw = has(l->name, "nchw"), bfloat = has(l->name, "bfloat16"), size = value_bytes(l->name);
  for (size_t pixel = 0; pixel < l->pixels; pixel++)
    for (size_t c = 0; c < 3; c++) {
      size_t image = pixel / l->plane;
      size_t at = nchw ? (image * 3 + c) * l->plane + pixel % l->plane : pixel * 3 + c;
      unsigned char byte = ((unsigned char *)(uintptr_t)l->source)[pixel * 3 + c];
      char *to = (char *)(uintptr_t)l->target + at * size;
      float scaled = (float)byte * l->scale[c];
      float value = scaled + l->bias[c];
      uint16_t small = size != 2 ? 0 : bfloat ? bfloat_of(value) : half_of(value);
      if (size == 4) memcpy(to, &value, 4);
      else if (size == 2) memcpy(to, &small, 2);
      else *to = (char)byte;
    }
}

/* Does the first piece of a stream's work; 0 where it has to wait. */
static int advance(Stream *stream) {
  if (stream->count == 0) return 0;
  Piece *p = &stream->pieces[stream->first];
  if (p->kind == WAIT && events[p->event].exists && events[p->event].done < p->version) return 0;
  if (stream->now < p->earliest) stream->now = p->earliest;
  if (p->kind == WAIT && stream->now < events[p->event].at) stream->now = events[p->event].at;
  stream->now += p->takes;
  if (p->loses) is_lost = 1;
  if (p->kind == RECORD) events[p->event].done = p->version, events[p->event].at = stream->now;
  if (p->kind == KERNEL) run_kernel(&p->launch);
  if (p->kind == COPY) {
    if (sum_of(p->source, p->bytes) != p->sum) wrong("host memory was changed before it was copied");
    memcpy((void *)(uintptr_t)p->target, (void *)(uintptr_t)p->source, p->bytes);
  }
  stream->first = (stream->first + 1) % PIECES;
  stream->count--;
  return 1;
}
static int drain(Stream *stream) {
  while (stream->count > 0) {
    int moved = 0;
    for (int i = 0; i < STREAMS; i++) moved |= advance(&streams[i]);
    if (!moved) return wrong("streams wait for each other");
  }
  return is_lost ? LAUNCH_FAILED : failure[0] ? UNKNOWN : OK;
}

/* -- The driver's interface -- */

int cuInit(unsigned flags) { initialised = flags == 0; return enter("cuInit", 0); }
int cuGetErrorName(int code, const char **text) {
  *text = code == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : code == LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED"
        : code == NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : code == UNKNOWN ? "CUDA_ERROR_UNKNOWN" : NULL;
  return *text ? OK : INVALID_VALUE;
}
int cuGetErrorString(int code, const char **text) {
  *text = code == OUT_OF_MEMORY ? "out of memory" : code == LAUNCH_FAILED ? "unspecified launch failure"
        : code == NO_DEVICE ? "no CUDA-capable device is detected" : failure[0] ? failure : NULL;
  return *text ? OK : INVALID_VALUE;
}
int cuDeviceGetCount(int *count) { ENTER(0); *count = devices; return OK; }
int cuDeviceGet(int *device, int ordinal) { ENTER(0); *device = ordinal; return ordinal < devices ? OK : 101; }
int cuDeviceGetName(char *name, int length, int device) {
  ENTER(0);
  snprintf(name, length, "simulated device %d", device);
  return OK;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  ENTER(0);
  (void)device;
  *value = attribute == 75 ? 5 : 0;
  return attribute == 75 || attribute == 76 ? OK : INVALID_VALUE;
}
int cuDevicePrimaryCtxRetain(Word *context, int device) { ENTER(0); (void)device; retained++; *context = CONTEXT; return OK; }
int cuDevicePrimaryCtxRelease_v2(int device) { ENTER(0); (void)device; return retained-- > 0 ? OK : INVALID_CONTEXT; }
int cuCtxPushCurrent_v2(Word context) {
  /* Also in a lost context. */
  if (context != CONTEXT || retained == 0) return INVALID_CONTEXT;
  depth++;
  return OK;
}
int cuCtxPopCurrent_v2(Word *context) { *context = CONTEXT; return depth-- > 0 ? OK : INVALID_CONTEXT; }

int cuMemHostRegister_v2(Word address, size_t bytes, unsigned flags) {
  ENTER(1);
  if (bytes == 0 || flags) return INVALID_VALUE;
  for (int i = 0; i < RANGES; i++)
    if (ranges[i].kind == 'r' && address < ranges[i].address + ranges[i].bytes && ranges[i].address < address + bytes) return 712;
  return add_range(address, bytes, 'r');
}
static int drop(Word address, int kind) {
  Range *range = range_at(address, kind);
  if (range == NULL) return INVALID_VALUE;
  for (int s = 0; s < STREAMS; s++)
    for (int i = 0; i < streams[s].count; i++) {
      Piece *p = &streams[s].pieces[(streams[s].first + i) % PIECES];
      if (p->kind == COPY && p->source >= address && p->source < address + range->bytes)
        return wrong("page-locked memory was given back before it was copied");
    }
  if (kind == 'd' && !is_idle(address, range->bytes)) return wrong("device memory was freed while it may be in use");
  if (kind == 'd') memory_left += range->bytes;
  if (kind != 'r') free((void *)(uintptr_t)address);
  range->kind = 0;
  return OK;
}
int cuMemHostUnregister(Word address) { ENTER(1); return drop(address, 'r'); }
int cuMemHostAlloc(Word *address, size_t bytes, unsigned flags) {
  ENTER(1);
  if (bytes == 0 || flags) return INVALID_VALUE;
  *address = (Word)(uintptr_t)malloc(bytes);
  return add_range(*address, bytes, 'h');
}
int cuMemFreeHost(Word address) { ENTER(1); return drop(address, 'h'); }
int cuMemAlloc_v2(Word *address, size_t bytes) {
  ENTER(1);
  if (bytes == 0) return INVALID_VALUE;
  if (bytes > memory_left) return OUT_OF_MEMORY;
  memory_left -= bytes;
  *address = (Word)(uintptr_t)aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  return add_range(*address, bytes, 'd');
}
int cuMemFree_v2(Word address) { ENTER(1); return drop(address, 'd'); }
int cuMemGetInfo_v2(Word *left, Word *total) { ENTER(1); *left = memory_left; *total = memory; return OK; }

int cuMemcpyHtoDAsync_v2(Word target, Word source, size_t bytes, Word handle) {
  ENTER(1);
  Stream *stream = stream_of(handle);
  if (stream == NULL) return INVALID_HANDLE;
  note(stream, NULL);
  if (!range_within(source, bytes, "hr")) return wrong("memory that is not page-locked is copied asynchronously");
  if (!range_within(target, bytes, "d")) return wrong("a copy goes where no device memory is");
  begin(stream);
  int code = touch(stream, target, bytes, 1);
  return code ? code : push(stream, (Piece){.kind = COPY, .target = target, .source = source, .bytes = bytes,
                                                .sum = sum_of(source, bytes), .takes = bytes * 1e-7});
}
/* The default stream's work is done, this thread knows, and it may copy to or from device memory. */
static int copy_now(Word address, size_t bytes, int writes) {
  if (!range_within(address, bytes, "d")) return wrong("a copy is not within device memory");
  begin(&streams[0]);
  int code = touch(&streams[0], address, bytes, writes);
  if (!code) code = drain(&streams[0]);
  merge(host_clock, streams[0].clock);
  return code;
}
int cuMemcpyDtoH_v2(void *target, Word source, size_t bytes) {
  ENTER(1);
  int code = copy_now(source, bytes, 0);
  if (!code) memcpy(target, (void *)(uintptr_t)source, bytes);
  return code;
}
int cuMemcpyHtoD_v2(Word target, const void *source, size_t bytes) {
  ENTER(1);
  int code = copy_now(target, bytes, 1);
  if (!code) memcpy((void *)(uintptr_t)target, source, bytes);
  return code;
}

int cuStreamCreate(Word *handle, unsigned flags) {
  ENTER(1);
  if (flags != 1) return NOT_SUPPORTED; /* others wait for the default stream */
  for (int i = 1; i < STREAMS; i++)
    if (!streams[i].exists) { streams[i].exists = 1; *handle = STREAM_BASE + i; return OK; }
  return wrong("too many streams");
}
int cuStreamDestroy_v2(Word handle) {
  ENTER(1);
  Stream *stream = stream_of(handle);
  if (stream == NULL || handle == 0) return INVALID_HANDLE;
  stream->exists = 0;
  return drain(stream);
}
int cuStreamSynchronize(Word handle) {
  ENTER(1);
  Stream *stream = stream_of(handle);
  if (stream == NULL) return INVALID_HANDLE;
  int code = drain(stream);
  merge(host_clock, stream->clock);
  if (host_now < stream->now) host_now = stream->now;
  return code;
}
int cuStreamWaitEvent(Word handle, Word event, unsigned flags) {
  ENTER(1);
  Stream *stream = stream_of(handle);
  Event *e = event_of(event);
  if (stream == NULL || e == NULL) return INVALID_HANDLE;
  note(stream, e);
  if (flags) return INVALID_VALUE;
  merge(stream->clock, e->clock);
  return push(stream, (Piece){.kind = WAIT, .event = (int)(e - events), .version = e->recorded});
}
int cuEventCreate(Word *handle, unsigned flags) {
  ENTER(1);
  if (flags != 0 && flags != 2) return INVALID_VALUE;
  for (int i = 0; i < EVENTS; i++)
    if (!events[i].exists) { events[i] = (Event){.exists = 1, .timed = flags == 0}; *handle = EVENT_BASE + i; return OK; }
  return wrong("too many events");
}
int cuEventDestroy_v2(Word handle) {
  ENTER(1);
  Event *e = event_of(handle);
  if (e == NULL) return INVALID_HANDLE;
  e->exists = 0;
  return OK;
}
int cuEventRecord(Word handle, Word to) {
  ENTER(1);
  Stream *stream = stream_of(to);
  Event *e = event_of(handle);
  if (stream == NULL || e == NULL) return INVALID_HANDLE;
  note(stream, e);
  begin(stream);
  memcpy(e->clock, stream->clock, sizeof e->clock);
  e->recorded++;
  return push(stream, (Piece){.kind = RECORD, .event = (int)(e - events), .version = e->recorded});
}
int cuEventQuery(Word handle) {
  ENTER(1);
  Event *e = event_of(handle);
  if (e == NULL) return INVALID_HANDLE;
  if (e->done < e->recorded) for (int i = 0; i < STREAMS; i++) advance(&streams[i]);
  if (is_lost) return LAUNCH_FAILED;
  if (failure[0]) return UNKNOWN;
  if (e->done < e->recorded) return NOT_READY;
  merge(host_clock, e->clock);
  if (host_now < e->at) host_now = e->at;
  return OK;
}
int cuEventElapsedTime(float *milliseconds, Word from, Word to) {
  ENTER(1);
  Event *a = event_of(from), *b = event_of(to);
  if (a == NULL || b == NULL || !a->timed || !b->timed || !a->recorded || !b->recorded) return INVALID_HANDLE;
  if (a->done < a->recorded || b->done < b->recorded) return NOT_READY;
  *milliseconds = (float)(b->at - a->at);
  return OK;
}

int cuModuleLoadData(Word *module, const char *image) {
  ENTER(1);
  if (strncmp(image, ".version", 8)) return INVALID_PTX;
  for (int i = 0; i < MODULES; i++)
    if (modules[i] == NULL) { modules[i] = strdup(image); *module = MODULE_BASE + i; return OK; }
  return wrong("too many modules");
}
int cuModuleUnload(Word module) {
  ENTER(1);
  Word i = module - MODULE_BASE;
  if (i >= MODULES || modules[i] == NULL) return INVALID_HANDLE;
  free(modules[i]);
  modules[i] = NULL;
  return OK;
}
int cuModuleGetFunction(Word *function, Word module, const char *name) {
  ENTER(1);
  Word i = module - MODULE_BASE;
  if (i >= MODULES || modules[i] == NULL) return INVALID_HANDLE;
  char *at = strstr(modules[i], name);
  *function = (Word)(uintptr_t)at;
  return at ? OK : NOT_FOUND;
}
int cuLaunchKernel(Word function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   Word handle, void **parameters, void **extra) {
  ENTER(1);
  Stream *stream = stream_of(handle);
  Launch l = {.name = (const char *)(uintptr_t)function, .source = 0};
  if (stream == NULL) return INVALID_HANDLE;
  note(stream, NULL);
  if (gy != 1 || gz != 1 || by != 1 || bz != 1 || shared || extra || bx > 1024) return INVALID_VALUE;
  if (is_named(l.name, "shardtool_spin") || is_named(l.name, "shardtool_trap")) {
    int loses = is_named(l.name, "shardtool_trap");
    begin(stream);
    return push(stream, (Piece){.kind = USE, .loses = loses, .takes = loses ? 0 : *(uint64_t *)parameters[0] * 1e-6});
  }
  l.source = *(Word *)parameters[0];
  l.target = *(Word *)parameters[1];
  l.pixels = *(uint32_t *)parameters[2];
  l.plane = *(uint32_t *)parameters[3];
  for (int c = 0; c < 3; c++) l.scale[c] = *(float *)parameters[4 + c], l.bias[c] = *(float *)parameters[7 + c];
  if ((uint64_t)gx * bx < l.pixels) return wrong("a launch has too few threads");
  size_t bytes = (size_t)l.pixels * 3, results = bytes * value_bytes(l.name);
  if (!range_within(l.source, bytes, "d") || !range_within(l.target, results, "d")) return wrong("a kernel leaves device memory");
  begin(stream);
  int code = touch(stream, l.source, bytes, 0);
  if (!code) code = touch(stream, l.target, results, 1);
  return code ? code : push(stream, (Piece){.kind = KERNEL, .launch = l});
}

/* -- What tests say and ask -- */

/* Everything as at first: `memory` bytes of device memory, so many devices. */
void sim_reset(double bytes, int count) {
  for (int i = 0; i < STREAMS; i++) {
    streams[i].exists = streams[i].count = 0, streams[i].now = 0;
    memset(streams[i].clock, 0, sizeof streams[i].clock);
  }
  memset(events, 0, sizeof events);
  memset(ranges, 0, sizeof ranges);
  memset(modules, 0, sizeof modules);
  memset(host_clock, 0, sizeof host_clock);
  access_count = retained = depth = is_lost = 0;
  memset(failing, 0, sizeof failing);
  failure[0] = calls[0] = 0;
  memory = memory_left = (size_t)bytes;
  calls_length = 0, host_now = 0;
  devices = count;
}
/* The call of this name after `after` others fails; "*" is any call, and loses the context. */
void sim_fail(const char *call, int after, int code) {
  for (int i = 0; i < FAILING; i++)
    if (!failing[i].call[0]) {
      strcpy(failing[i].call, call);
      failing[i].after = after, failing[i].code = code;
      return;
    }
}
const char *sim_failure(void) { return failure; }
/* Work of a consumer. */
int sim_use(Word address, double bytes, Word handle, int writes) {
  Stream *stream = stream_of(handle);
  begin(stream);
  int code = touch(stream, address, (size_t)bytes, writes);
  return code ? code : push(stream, (Piece){.kind = USE});
}
/* The calls since the last time, a line each, with stream and event; looking at events and switching contexts are left out. */
const char *sim_calls(void) {
  static char copy[sizeof calls];
  strcpy(copy, calls);
  calls[0] = 0, calls_length = 0;
  return copy;
}
/* What was created and not given back; a context that is still current counts, too. */
int sim_living(void) {
  int living = retained + depth;
  for (int i = 1; i < STREAMS; i++) living += streams[i].exists;
  for (int i = 0; i < EVENTS; i++) living += events[i].exists;
  for (int i = 0; i < RANGES; i++) living += ranges[i].kind != 0;
  for (int i = 0; i < MODULES; i++) living += modules[i] != NULL;
  return living;
}
