/* Session files and saved contexts whose seal is right: two bytes give the size of the head, which is read as a message
 * and belongs to this bundle; the rest is the payload. */
#include <stdlib.h>
#include <string.h>

#include "runtime/bundle/bundle.h"
#include "runtime/bundle/sealed_file.h"
#include "runtime/exits/context_file.h"
#include "runtime/exits/kept_context.pb-c.h"
#include "tests/runtime/toy/toy_run.h"

enum { CAPACITY = 64 };

static const char *const path = "/dev/shm/llmpart-fuzz-kept";
static lp_bundle *bundle;
static lp_pool *pool;
static lp_halves halves;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  const char *why = "";
  bundle = toy_bundle_make(&(toy_placement){.prefill = "ddddcc", .exits = {1, 3}}, LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  pool = lp_pool_create(1);
  if (!lp_halves_find(bundle, &halves, &why)) abort();
  return 0;
}

/* The bundle's hash, which no mutation would find, and sizes that fit. */
static void repair(lp_buf *head) {
  Lp__Kept__Context *kept = lp__kept__context__unpack(NULL, head->size, (const uint8_t *)head->data);
  if (!kept) return;
  char *old = kept->bundle;
  kept->bundle = bundle->manifest.hash;
  head->size = 0;
  lp_buf_reserve(head, lp__kept__context__get_packed_size(kept) + 1);
  head->size = lp__kept__context__pack(kept, (uint8_t *)head->data);
  kept->bundle = old;
  lp__kept__context__free_unpacked(kept, NULL);
}

static void restore(lp_diag *diag) {
  lp_context_record record;
  lp_context *context = NULL;
  if (lp_context_restore(&halves, 0, pool, path, CAPACITY, &record, &context, diag) != LP_OK) return;
  lp_answer answer;
  lp_question question = {.end = 1};
  (void)!lp_context_ask(context, &question, &answer, diag);
  lp_context_free(context);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const lp_sealed_kind kinds[] = {{"CTXT", "context file", 1}, {"SESS", "session file", 1}};
  if (size < 3) return 0;
  bool session = data[0] & 1;
  size_t rest = size - 3, head_size = ((size_t)data[1] | (size_t)data[2] << 8) % (rest + 1);
  lp_buf head = {0}, payload = {0};
  lp_buf_append(&head, data + 3, head_size);
  lp_buf_append(&payload, data + 3 + head_size, rest - head_size);
  if (!session) repair(&head);
  lp_diag *diag = lp_diag_create();
  lp_saved_session saved;
  if (lp_sealed_write(path, &kinds[session], &head, &payload, diag) != LP_OK) abort();
  if (!session)
    restore(diag);
  else if (lp_saved_session_read(path, &saved, diag) == LP_OK)
    lp_saved_session_free(&saved);
  lp_diag_free(diag);
  lp_buf_free(&head);
  lp_buf_free(&payload);
  return 0;
}
