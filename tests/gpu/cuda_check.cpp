// Finds races between the threads of an emitted CUDA kernel that cuda_host.h runs, whatever the order in which they
// run. Kernels are compiled with -fsanitize=thread and linked without its library: the compiler calls the functions
// __tsan_* below before each access to memory. For each byte they keep its last write and its last reads; two accesses
// by different threads, one of them a write, race if no barrier of their block, or of their warp if they have the same,
// is between them, or if their blocks differ. Reads of shared memory that the block has not written are found too, and those of data that an asynchronous
// copy has not delivered. A finding ends the program with a message.
#include "cuda_check.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <unordered_map>

// Set by the linker: the section that holds all variables in shared memory, where there are any.
extern "C" char __start_lp_shared[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_lp_shared[] __attribute__((weak, visibility("hidden")));
// Set by the linker: the module with its own variables.
extern "C" char __ehdr_start[] __attribute__((visibility("hidden")));
extern "C" char _end[] __attribute__((visibility("hidden")));

namespace {

enum { MANY = -2, COPYING = -3, MANY_OF_WARP = -100, PAGE = 1024, MOST_PAGES = 1 << 15, CACHED = 1 << 10 };
enum { WARP = 32, MOST_WARPS = 32 };

// Blocks are numbered through all launches, from 1. A launch's first block tells whether an access is of this launch.
struct Cell {
  uint32_t write_block, write_part, read_block, read_part;
  uint32_t write_warp_part, read_warp_part;
  int16_t writer, reader; // a thread, MANY, COPYING, or several threads of one warp: MANY_OF_WARP - warp
  bool other_blocks;      // blocks other than `read_block` read it in this launch
};
struct Range {
  uintptr_t begin, end;
};

std::unordered_map<uintptr_t, Cell *> pages;
struct {
  uintptr_t page;
  Cell *cells;
} cached[CACHED];
Range ignored[2];
uint32_t block, part, first_block, warp_part[MOST_WARPS];
int thread = -1;
unsigned at_block[3];

const char *kernel_of(const void *code) {
  Dl_info info;
  return dladdr(code, &info) && info.dli_sname ? info.dli_sname : "a kernel";
}

bool is_shared(uintptr_t address) {
  return address >= (uintptr_t)__start_lp_shared && address < (uintptr_t)__stop_lp_shared;
}

[[noreturn]] void report(uintptr_t address, const void *code, const char *does, const char *what, int other) {
  char where[64], whom[32] = "another thread";
  if (is_shared(address))
    snprintf(where, sizeof where, "shared memory at 0x%zx", (size_t)(address - (uintptr_t)__start_lp_shared));
  else
    snprintf(where, sizeof where, "global memory at %p", (void *)address);
  if (other >= 0) snprintf(whom, sizeof whom, "thread %d", other);
  fprintf(stderr, "cuda_check: %s: block (%u, %u, %u): thread %d %s %s", kernel_of(code), at_block[0], at_block[1],
          at_block[2], thread, does, where);
  fprintf(stderr, strstr(what, "%s") ? what : "%s", strstr(what, "%s") ? whom : what);
  fputc('\n', stderr);
  abort();
}

Cell *cell_of(uintptr_t address) {
  const uintptr_t page = address / PAGE;
  auto &near = cached[page % CACHED];
  if (!near.cells || near.page != page) {
    Cell *&cells = pages[page];
    if (!cells) cells = (Cell *)calloc(PAGE, sizeof *cells);
    if (!cells) abort();
    near = {page, cells};
  }
  return near.cells + address % PAGE;
}

bool in(const Range &range, uintptr_t address) {
  return address >= range.begin && address < range.end;
}

// Tells whether threads can share this memory.
bool counts(uintptr_t address) {
  if (thread < 0 || in(ignored[0], address) || in(ignored[1], address)) return false;
  return is_shared(address) || !(address >= (uintptr_t)__ehdr_start && address < (uintptr_t)_end);
}

int warp_of(int who) {
  return who >= 0 ? who / WARP : who <= MANY_OF_WARP ? MANY_OF_WARP - who : -1;
}
// Tells whether the running thread's access comes after that of `who` by a barrier of the warp of both.
bool met(int who, uint32_t when) {
  const int warp = thread / WARP;
  return warp_of(who) == warp && when < warp_part[warp];
}

void check_write(Cell *c, uintptr_t address, const void *code) {
  const bool shared = is_shared(address);
  if (c->write_block == block && c->writer == COPYING)
    report(address, code, "writes", ", to which a copy is under way", 0);
  if (c->write_block == block && c->write_part == part && c->writer != thread && !met(c->writer, c->write_warp_part))
    report(address, code, "writes", ", which %s writes too, without a barrier between them", c->writer);
  if (c->read_block == block && c->read_part == part && c->reader != thread && !met(c->reader, c->read_warp_part))
    report(address, code, "writes", ", which %s reads, without a barrier between them", c->reader);
  if (shared) return;
  if (c->write_block >= first_block && c->write_block != block)
    report(address, code, "writes", ", which another block writes too", 0);
  if (c->read_block >= first_block && (c->read_block != block || c->other_blocks))
    report(address, code, "writes", ", which another block reads", 0);
}

void write(uintptr_t address, size_t bytes, const void *code) {
  if (!counts(address)) return;
  for (size_t i = 0; i < bytes; i++) {
    Cell *c = cell_of(address + i);
    check_write(c, address + i, code);
    c->write_block = block, c->write_part = part, c->writer = (int16_t)thread;
    c->write_warp_part = warp_part[thread / WARP];
  }
}

void check_read(const Cell *c, uintptr_t address, const void *code) {
  if (c->write_block == block && c->writer == COPYING)
    report(address, code, "reads", ", to which a copy is under way", 0);
  if (c->write_block == block && c->write_part == part && c->writer != thread && !met(c->writer, c->write_warp_part))
    report(address, code, "reads", ", which %s writes, without a barrier between them", c->writer);
  if (is_shared(address)) {
    if (c->write_block != block) report(address, code, "reads", ", which its block has not written", 0);
  } else if (c->write_block >= first_block && c->write_block != block) {
    report(address, code, "reads", ", which another block writes", 0);
  }
}

void read(uintptr_t address, size_t bytes, const void *code) {
  if (!counts(address)) return;
  for (size_t i = 0; i < bytes; i++) {
    Cell *c = cell_of(address + i);
    check_read(c, address + i, code);
    if (c->read_block == block && c->read_part == part) {
      const bool same = warp_of(c->reader) == thread / WARP;
      if (c->reader != thread) c->reader = (int16_t)(same ? MANY_OF_WARP - thread / WARP : MANY);
      if (same) c->read_warp_part = warp_part[thread / WARP];
      continue;
    }
    c->other_blocks = c->read_block >= first_block && (c->other_blocks || c->read_block != block);
    c->read_block = block, c->read_part = part, c->reader = (int16_t)thread;
    c->read_warp_part = warp_part[thread / WARP];
  }
}

} // namespace

extern "C" {

void lp_check_ignore(int which, const void *begin, size_t bytes) {
  ignored[which] = {(uintptr_t)begin, (uintptr_t)begin + bytes};
}
void lp_check_launch() {
  first_block = block + 1;
  if (pages.size() < MOST_PAGES) return;
  for (auto &page : pages)
    free(page.second);
  pages.clear();
  memset(cached, 0, sizeof cached);
}
void lp_check_block(unsigned x, unsigned y, unsigned z) {
  block++, part = 0;
  at_block[0] = x, at_block[1] = y, at_block[2] = z;
}
void lp_check_barrier() {
  part++;
}
void lp_check_warp_barrier(unsigned warp) {
  warp_part[warp]++;
}
void lp_check_thread(int now) {
  thread = now;
}
void lp_check_copy_begins(const void *to, size_t bytes) {
  const void *code = __builtin_return_address(0);
  if (!is_shared((uintptr_t)to)) report((uintptr_t)to, code, "copies to", ", which is not shared memory", 0);
  write((uintptr_t)to, bytes, code);
  for (size_t i = 0; i < bytes; i++)
    cell_of((uintptr_t)to + i)->writer = COPYING;
}
void lp_check_copy_ends(const void *to, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    Cell *c = cell_of((uintptr_t)to + i);
    c->write_part = part, c->write_warp_part = warp_part[thread / WARP], c->writer = (int16_t)thread;
  }
}

#define ACCESS(n)                                                                                                      \
  void __tsan_read##n(void *p) {                                                                                       \
    read((uintptr_t)p, n, __builtin_return_address(0));                                                                \
  }                                                                                                                    \
  void __tsan_unaligned_read##n(void *p) {                                                                             \
    read((uintptr_t)p, n, __builtin_return_address(0));                                                                \
  }                                                                                                                    \
  void __tsan_write##n(void *p) {                                                                                      \
    write((uintptr_t)p, n, __builtin_return_address(0));                                                               \
  }                                                                                                                    \
  void __tsan_unaligned_write##n(void *p) {                                                                            \
    write((uintptr_t)p, n, __builtin_return_address(0));                                                               \
  }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
void __tsan_read_range(void *p, size_t bytes) {
  read((uintptr_t)p, bytes, __builtin_return_address(0));
}
void __tsan_write_range(void *p, size_t bytes) {
  write((uintptr_t)p, bytes, __builtin_return_address(0));
}
void __tsan_init() {
}
void __tsan_func_entry(void *) {
}
void __tsan_func_exit() {
}
void __tsan_vptr_update(void **, void *) {
}
void __tsan_vptr_read(void **) {
}
}
