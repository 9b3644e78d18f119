include_guard()
find_program(LP_LLC NAMES llc-19 llc REQUIRED)
find_package(Threads REQUIRED)

# lp_kernel_object(OUT name arch cpu isa dot source): object file of a source that calls kernels, linked with their
# bitcode and optimised as the code generator does; its path in OUT.
function(lp_kernel_object out name arch cpu isa dot source)
  set(base ${CMAKE_CURRENT_BINARY_DIR}/${name})
  cmake_path(ABSOLUTE_PATH source)
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  if(isa STREQUAL "AVX512")
    set(width -mprefer-vector-width=512 -mstackrealign)
  endif()
  add_custom_command(OUTPUT ${base}.o
    COMMAND ${LP_CLANG} --target=${arch}-linux-gnu ${LP_KERNEL_FLAGS} ${LP_KERNEL_FLAGS_${arch}} -march=${cpu} ${width}
      -DTEST_ISA=LPK_ISA_${isa} -DTEST_DOT=LPK_DOT_${dot} -c ${source} -o ${base}.own.bc
    COMMAND ${LP_LLVM_LINK} --internalize --only-needed ${base}.own.bc ${LP_KERNELS_${arch}} -o ${base}.linked.bc
    COMMAND ${LP_OPT} -O3 ${base}.linked.bc -o ${base}.bc
    COMMAND ${LP_LLC} -O3 -relocation-model=pic -filetype=obj ${base}.bc -o ${base}.o
    DEPENDS ${source} ${headers} ${LP_KERNELS_${arch}} lp_kernels_bitcode VERBATIM)
  set(${out} ${base}.o PARENT_SCOPE)
endfunction()
