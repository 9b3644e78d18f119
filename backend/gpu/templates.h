/* The kernel templates, embedded when llmpart is built (embed.cmake). */
#ifndef LP_GPU_TEMPLATES_H
#define LP_GPU_TEMPLATES_H

#include <stddef.h>

typedef struct {
  const char *name, *text;
} gpu_template_entry;
extern const gpu_template_entry gpu_templates[];
extern const size_t gpu_template_count;

#endif
