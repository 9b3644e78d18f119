# The Python wheel (pyproject.toml): scikit-build-core installs the command and the runtime into the package's folder,
# and with them the linker that `compile` runs.
if(SKBUILD)
  enable_language(CXX)
  execute_process(COMMAND ${LP_LLVM_CONFIG} --link-static --libs lto passes option object support bitwriter OUTPUT_VARIABLE libs
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(libs)
  list(REMOVE_ITEM libs -lPolly -lPollyISL)
  add_executable(lp_wheel_lld cmake/package/lld.cpp)
  target_compile_options(lp_wheel_lld PRIVATE -std=c++17 -fno-rtti)
  target_link_libraries(lp_wheel_lld PRIVATE lldELF lldCommon ${libs} lp_llvm -s)
  install(PROGRAMS $<TARGET_FILE:lp_wheel_lld> DESTINATION bin RENAME ld.lld-19 COMPONENT wheel)
endif()
