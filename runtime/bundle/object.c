/* A loader of ELF shared objects (object.h). Names and numbers are those of the System V ABI: the generic one, and the
 * supplements for x86-64 and AArch64. */
#include "runtime/bundle/object.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cores.h"

#if defined(__aarch64__)
enum { MACHINE = EM_AARCH64, R_BASE = R_AARCH64_RELATIVE, R_DATA = R_AARCH64_GLOB_DAT };
enum { R_CALL = R_AARCH64_JUMP_SLOT, R_WORD = R_AARCH64_ABS64 };
#else
enum { MACHINE = EM_X86_64, R_BASE = R_X86_64_RELATIVE, R_DATA = R_X86_64_GLOB_DAT };
enum { R_CALL = R_X86_64_JUMP_SLOT, R_WORD = R_X86_64_64 };
#endif

enum { MOST_BYTES = 1 << 30, MOST_SEGMENTS = 64 };

/* A table in the loaded object: `count` entries, or bytes of text. */
typedef struct {
  uint64_t at, count;
} table;

struct lp_object {
  const char *file;
  lp_diag *diag; /* while it is opened */
  unsigned char *memory;
  size_t size; /* of the memory, whole pages */
  table symbols, names, moves[2], hash;
};

static lp_status refuse(const lp_object *object, const char *what) {
  return lp_error(object->diag, LP_LOC_FILE(object->file), "the code cannot be loaded: %s", what);
}

/* ---- reading within bounds --------------------------------------------------------------------------------------- */

static bool fits(uint64_t at, uint64_t size, uint64_t all) {
  return at <= all && size <= all - at;
}

/* Copies entry `index` of a table of the loaded object. */
static bool read_entry(const lp_object *object, const table *from, uint64_t index, void *out, size_t size) {
  if (index >= from->count || index > MOST_BYTES || !fits(from->at, (index + 1) * size, object->size)) return false;
  memcpy(out, object->memory + from->at + index * size, size);
  return true;
}

/* Tells whether `name` is the text at this place of the names. */
static bool is_named(const lp_object *object, uint64_t at, const char *name) {
  uint64_t size = strlen(name) + 1;
  return fits(at, size, object->names.count) && memcmp(object->memory + object->names.at + at, name, size) == 0;
}

/* ---- symbols ----------------------------------------------------------------------------------------------------- */

static uint32_t hash_of(const char *name) {
  uint32_t hash = 5381;
  for (; *name; name++)
    hash = hash * 33 + (unsigned char)*name;
  return hash;
}

static bool defines(const lp_object *object, const Elf64_Sym *symbol) {
  return symbol->st_shndx != SHN_UNDEF && fits(symbol->st_value, symbol->st_size, object->size);
}

/* The GNU hash table: its head, a Bloom filter, the first symbol of each bucket, and the hashes of the symbols, of
 * which the lowest bit ends a bucket. */
void *lp_object_find(const lp_object *object, const char *name) {
  uint32_t head[4], first = 0, wanted = hash_of(name);
  for (uint64_t i = 0; i < LP_COUNT(head); i++)
    if (!read_entry(object, &object->hash, i, &head[i], sizeof *head)) return NULL;
  if (head[0] == 0) return NULL;
  const uint64_t buckets = LP_COUNT(head) + 2 * (uint64_t)head[2];
  const uint64_t chains = buckets + head[0];
  if (!read_entry(object, &object->hash, buckets + wanted % head[0], &first, sizeof first)) return NULL;
  for (uint64_t i = first; first >= head[1] && first > 0; i++) {
    uint32_t hash;
    Elf64_Sym symbol;
    if (!read_entry(object, &object->hash, chains + i - head[1], &hash, sizeof hash)) return NULL;
    if ((hash | 1) == (wanted | 1) && read_entry(object, &object->symbols, i, &symbol, sizeof symbol) &&
        is_named(object, symbol.st_name, name) && defines(object, &symbol))
      return object->memory + symbol.st_value;
    if ((hash & 1) != 0) return NULL;
  }
  return NULL;
}

/* Barriers call sched_yield after a long spin. */
static int give_way(void) {
  lp_give_way();
  return 0;
}

typedef void any_function(void);
static const struct {
  const char *name;
  any_function *function;
} imports[] = {{"memcpy", (any_function *)memcpy},
               {"memmove", (any_function *)memmove},
               {"memset", (any_function *)memset},
               {"memcmp", (any_function *)memcmp},
               {"sched_yield", (any_function *)give_way}};

/* The address that a relocation by a symbol means. */
static lp_status resolve(const lp_object *object, uint64_t index, uint64_t *out) {
  Elf64_Sym symbol;
  if (!read_entry(object, &object->symbols, index, &symbol, sizeof symbol))
    return refuse(object, "a symbol lies outside of the file");
  if (defines(object, &symbol)) {
    *out = (uint64_t)(uintptr_t)object->memory + symbol.st_value;
    return LP_OK;
  }
  for (size_t i = 0; i < LP_COUNT(imports); i++) {
    if (!is_named(object, symbol.st_name, imports[i].name)) continue;
    *out = (uint64_t)(uintptr_t)imports[i].function;
    return LP_OK;
  }
  const bool named = symbol.st_name < object->names.count;
  const char *name = (const char *)object->memory + object->names.at + (named ? symbol.st_name : 0);
  return lp_error(
      object->diag, LP_LOC_FILE(object->file), "the code cannot be loaded: it imports '%.*s'",
      named ? (int)strnlen(name, object->names.count - symbol.st_name < 60 ? object->names.count - symbol.st_name : 60)
            : 0,
      name);
}

/* ---- relocation -------------------------------------------------------------------------------------------------- */

static lp_status relocate_one(const lp_object *object, const Elf64_Rela *move) {
  const uint32_t type = (uint32_t)ELF64_R_TYPE(move->r_info);
  uint64_t value = (uint64_t)(uintptr_t)object->memory;
  if (!fits(move->r_offset, sizeof value, object->size)) return refuse(object, "a relocation lies outside of the file");
  if (type == R_DATA || type == R_CALL || type == R_WORD)
    LP_TRY(resolve(object, ELF64_R_SYM(move->r_info), &value));
  else if (type != R_BASE)
    return refuse(object, "it has a relocation of another kind than code of llmpart");
  value += (uint64_t)move->r_addend;
  memcpy(object->memory + move->r_offset, &value, sizeof value);
  return LP_OK;
}

static lp_status relocate(const lp_object *object) {
  for (size_t t = 0; t < LP_COUNT(object->moves); t++)
    for (uint64_t i = 0; i < object->moves[t].count; i++) {
      Elf64_Rela move;
      if (!read_entry(object, &object->moves[t], i, &move, sizeof move))
        return refuse(object, "the relocations lie outside of the file");
      LP_TRY(relocate_one(object, &move));
    }
  return LP_OK;
}

/* ---- segments ---------------------------------------------------------------------------------------------------- */

/* The program headers of a file. */
typedef struct {
  const unsigned char *bytes;
  size_t size;
  Elf64_Phdr header[MOST_SEGMENTS];
  int count;
} image;

static uint64_t whole_pages(uint64_t size) {
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  return (size + page - 1) / page * page;
}

static lp_status read_headers(const lp_object *object, image *from) {
  Elf64_Ehdr head;
  if (from->size < sizeof head) return refuse(object, "it is too short");
  memcpy(&head, from->bytes, sizeof head);
  if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
      head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_type != ET_DYN)
    return refuse(object, "it is no shared object");
  if (head.e_machine != MACHINE) return refuse(object, "it is for another processor");
  if (head.e_phentsize != sizeof *from->header || head.e_phnum > MOST_SEGMENTS ||
      !fits(head.e_phoff, head.e_phnum * sizeof *from->header, from->size))
    return refuse(object, "its segments lie outside of the file");
  from->count = head.e_phnum;
  memcpy(from->header, from->bytes + head.e_phoff, head.e_phnum * sizeof *from->header);
  return LP_OK;
}

/* Sets object->size from the segments, which must lie within the file. */
static lp_status measure(lp_object *object, const image *from) {
  LP_FOR_EACH(const Elf64_Phdr, h, from->header, from->count) {
    if (h->p_type == PT_TLS) return refuse(object, "it has thread-local data");
    if (h->p_type != PT_LOAD) continue;
    if (!fits(h->p_offset, h->p_filesz, from->size) || h->p_filesz > h->p_memsz ||
        !fits(h->p_vaddr, h->p_memsz, MOST_BYTES))
      return refuse(object, "its segments lie outside of the file");
    if (h->p_vaddr + h->p_memsz > object->size) object->size = (size_t)(h->p_vaddr + h->p_memsz);
  }
  object->size = (size_t)whole_pages(object->size);
  return object->size > 0 ? LP_OK : refuse(object, "it has no segments");
}

static lp_status copy_segments(lp_object *object, const image *from) {
  void *memory = mmap(NULL, object->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return refuse(object, "there is no memory for it");
  object->memory = memory;
  LP_FOR_EACH(const Elf64_Phdr, h, from->header, from->count)
    if (h->p_type == PT_LOAD) memcpy(object->memory + h->p_vaddr, from->bytes + h->p_offset, h->p_filesz);
  return LP_OK;
}

/* Gives each page the access of its segment. Emitted objects put segments of different access on different pages. */
static lp_status protect(const lp_object *object, const image *from) {
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  LP_FOR_EACH(const Elf64_Phdr, h, from->header, from->count) {
    if (h->p_type != PT_LOAD || h->p_memsz == 0) continue;
    unsigned char *begin = object->memory + h->p_vaddr / page * page;
    unsigned char *end = object->memory + whole_pages(h->p_vaddr + h->p_memsz);
    const bool writes = (h->p_flags & PF_W) != 0, runs = (h->p_flags & PF_X) != 0;
    if (writes && runs) return refuse(object, "a segment is writable and executable");
    if (mprotect(begin, (size_t)(end - begin), PROT_READ | (writes ? PROT_WRITE : 0) | (runs ? PROT_EXEC : 0)) != 0)
      return refuse(object, "the system does not make its memory executable");
    if (runs) __builtin___clear_cache((char *)begin, (char *)end);
  }
  return LP_OK;
}

/* ---- the dynamic section ----------------------------------------------------------------------------------------- */

static lp_status read_dynamic(lp_object *object, const table *section) {
  Elf64_Dyn entry;
  object->symbols.count = MOST_BYTES / sizeof(Elf64_Sym); /* reading stays within the memory */
  object->hash.count = MOST_BYTES / sizeof(uint32_t);
  for (uint64_t i = 0; read_entry(object, section, i, &entry, sizeof entry) && entry.d_tag != DT_NULL; i++) {
    const uint64_t value = entry.d_un.d_val;
    switch (entry.d_tag) {
    case DT_SYMTAB:
      object->symbols.at = value;
      break;
    case DT_STRTAB:
      object->names.at = value;
      break;
    case DT_STRSZ:
      object->names.count = value;
      break;
    case DT_GNU_HASH:
      object->hash.at = value;
      break;
    case DT_RELA:
      object->moves[0].at = value;
      break;
    case DT_RELASZ:
      object->moves[0].count = value / sizeof(Elf64_Rela);
      break;
    case DT_JMPREL:
      object->moves[1].at = value;
      break;
    case DT_PLTRELSZ:
      object->moves[1].count = value / sizeof(Elf64_Rela);
      break;
    case DT_INIT:
    case DT_INIT_ARRAY:
    case DT_REL:
    case DT_RELR:
      return refuse(object, "it has constructors, or relocations of another form");
    default:
      break;
    }
  }
  if (!fits(object->names.at, object->names.count, object->size))
    return refuse(object, "its names lie outside of the file");
  return object->symbols.at > 0 && object->hash.at > 0 ? LP_OK : refuse(object, "it has no symbols");
}

static lp_status find_dynamic(lp_object *object, const image *from) {
  LP_FOR_EACH(const Elf64_Phdr, h, from->header, from->count) {
    if (h->p_type != PT_DYNAMIC) continue;
    const table section = {h->p_vaddr, h->p_memsz / sizeof(Elf64_Dyn)};
    return read_dynamic(object, &section);
  }
  return refuse(object, "it has no dynamic section");
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static lp_status load(lp_object *object, image *from) {
  LP_TRY(read_headers(object, from));
  LP_TRY(measure(object, from));
  LP_TRY(copy_segments(object, from));
  LP_TRY(find_dynamic(object, from));
  LP_TRY(relocate(object));
  return protect(object, from);
}

lp_status lp_object_open(const char *file, const void *bytes, size_t size, lp_object **out, lp_diag *diag) {
  lp_object *object = lp_alloc(sizeof *object);
  *object = (lp_object){.file = file, .diag = diag};
  image from = {.bytes = bytes, .size = size};
  lp_status status = load(object, &from);
  if (status != LP_OK) {
    lp_object_close(object);
    object = NULL;
  }
  *out = object;
  return status;
}

void lp_object_close(lp_object *object) {
  if (!object) return;
  if (object->memory) (void)munmap(object->memory, object->size);
  free(object);
}
