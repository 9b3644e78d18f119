/* Generates tokens with the code of a bundle that is not split, through base/abi.h only: no runtime, no library but
 * libc. It is small enough to be built for another processor and run under an emulator. foreign_run STEPS model.so
 * weights.safetensors COUNT ID... : STEPS is the output of flatten.awk for the manifest. */
#include "base/abi.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SYMBOLS = 64, MOST_STATES = 512, MOST_BUFFERS = 4096, MOST_RUNS = 512, MOST_TOKENS = 4096 };

typedef struct {
  lp_layout_fn *layout;
  lp_segment_fn *run[MOST_RUNS];
  int run_count, input, output;
} program;

typedef struct {
  int64_t vocab, state_width[MOST_STATES];
  int state_count;
  program prefill, decode;
} model;

static void *must(void *value, const char *what) {
  if (value) return value;
  fprintf(stderr, "foreign_run: no %s\n", what);
  exit(1);
}

static void *symbol(void *code, const char *name) {
  return must(dlsym(code, name), name);
}

static void read_steps(const char *path, void *code, model *m) {
  FILE *file = must(fopen(path, "r"), path);
  char word[16], name[64];
  program *at = NULL;
  while (fscanf(file, "%15s %63s", word, name) == 2) {
    if (strcmp(word, "vocab") == 0) m->vocab = atoll(name);
    if (strcmp(word, "state") == 0 && m->state_count < MOST_STATES) m->state_width[m->state_count++] = atoll(name);
    if (strcmp(word, "input") == 0) at->input = atoi(name);
    if (strcmp(word, "output") == 0) at->output = atoi(name);
    if (strcmp(word, "run") == 0 && at->run_count < MOST_RUNS) *(void **)&at->run[at->run_count++] = symbol(code, name);
    if (strcmp(word, "program") == 0) {
      at = strcmp(name, "prefill") == 0 ? &m->prefill : &m->decode;
      if (fscanf(file, "%63s %*d", name) == 1) *(void **)&at->layout = symbol(code, name);
    }
  }
  fclose(file);
}

/* The data section of a safetensors file, aligned as the code expects. */
static char *read_weights(const char *path) {
  FILE *file = must(fopen(path, "rb"), path);
  uint64_t header = 0;
  if (fread(&header, sizeof header, 1, file) != 1 || fseek(file, 0, SEEK_END)) must(NULL, "weights");
  long size = ftell(file) - (long)header - 8;
  char *data = must(aligned_alloc(64, ((size_t)size + 63) / 64 * 64), "memory");
  if (fseek(file, (long)header + 8, SEEK_SET) || fread(data, 1, (size_t)size, file) != (size_t)size)
    must(NULL, "weights");
  fclose(file);
  return data;
}

/* One step with the `count` newest of the ids; returns the id with the greatest logit. */
static int64_t step(const model *m, const program *p, lp_frame *frame, int64_t *sym, const int64_t *ids,
                    int64_t count) {
  static int64_t offset[MOST_BUFFERS];
  sym[LP_SYM_S] = count;
  int64_t bytes = p->layout(sym, offset);
  frame->arena = must(aligned_alloc(64, ((size_t)bytes + 127) / 64 * 64), "memory");
  frame->offset = offset;
  memcpy(frame->arena + offset[p->input], ids, (size_t)count * sizeof *ids);
  for (int i = 0; i < p->run_count; i++)
    p->run[i](frame, 0);
  const float *logits = (const float *)(frame->arena + offset[p->output]);
  int64_t best = 0;
  for (int64_t i = 1; i < m->vocab; i++)
    if (logits[i] > logits[best]) best = i;
  free(frame->arena);
  sym[LP_SYM_P] += count;
  return best;
}

int main(int argc, char **argv) {
  static model m;
  static int64_t sym[MOST_SYMBOLS], ids[MOST_TOKENS];
  static void *state[MOST_STATES];
  static lp_barrier barrier;
  if (argc < 6) return 2;
  void *code = must(dlopen(argv[2], RTLD_NOW | RTLD_LOCAL), argv[2]);
  if (*(uint32_t *)symbol(code, "lp_abi") != LP_ABI_VERSION) must(NULL, "code of this ABI");
  read_steps(argv[1], code, &m);
  int64_t prompt = argc - 5, count = atoll(argv[4]), capacity = prompt + count;
  if (capacity > MOST_TOKENS) must(NULL, "room for so many tokens");
  for (int64_t i = 0; i < prompt; i++)
    ids[i] = atoll(argv[5 + i]);
  for (int i = 0; i < m.state_count; i++)
    state[i] = must(calloc((size_t)(m.state_width[i] * capacity), sizeof(float)), "memory");
  sym[LP_SYM_B] = sym[LP_SYM_R] = sym[LP_SYM_T] = 1;
  sym[LP_SYM_C] = capacity;
  lp_frame frame = {.sym = sym, .weights = read_weights(argv[3]), .state = state, .barrier = &barrier, .threads = 1};
  int64_t next = step(&m, &m.prefill, &frame, sym, ids, prompt);
  for (int64_t i = 0; i < count; i++) {
    printf("%s%lld", i ? "," : "", (long long)next);
    if (i + 1 < count) next = step(&m, &m.decode, &frame, sym, &next, 1);
  }
  printf("\n");
  return 0;
}
