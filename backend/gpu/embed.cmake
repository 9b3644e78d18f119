# cmake -DOUTPUT=templates.c -DINPUTS=a.kernel;b.kernel -P embed.cmake: the files' text as C arrays, by name.
set(arrays "")
set(entries "")
set(count 0)
foreach(input ${INPUTS})
  get_filename_component(name ${input} NAME_WE)
  file(READ ${input} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "static const char ${name}_text[] = {${bytes}0};\n")
  string(APPEND entries "    {\"${name}\", ${name}_text},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUTPUT} "#include \"backend/gpu/templates.h\"\n\n${arrays}\n"
  "const gpu_template_entry gpu_templates[] = {\n${entries}};\nconst size_t gpu_template_count = ${count};\n")
