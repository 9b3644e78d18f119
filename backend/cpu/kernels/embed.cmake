# cmake -DOUTPUT=file.c -DINPUTS=a.bc;b.bc -P embed.cmake: a C source with each file as lp_NAME[] and lp_NAME_size.
set(text "#include \"backend/cpu/kernels/kernels_bitcode.h\"\n")
foreach(input ${INPUTS})
  cmake_path(GET input STEM name)
  file(READ ${input} hex HEX)
  string(REGEX REPLACE "(................................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
  string(APPEND text "\n_Alignas(16) const unsigned char lp_${name}[] = {\n${hex}\n};\n"
    "const size_t lp_${name}_size = sizeof lp_${name};\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
