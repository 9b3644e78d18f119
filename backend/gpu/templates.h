/* The kernel templates, embedded when llmpart is built (embed.cmake). */
#pragma once

#include <stddef.h>

typedef struct {
  const char *name, *text;
} gpu_template_entry;
extern const gpu_template_entry gpu_templates[];
extern const size_t gpu_template_count;
