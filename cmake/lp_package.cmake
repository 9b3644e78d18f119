# Debian packages by CPack (`sh tools/package.sh`): llmpart, the command; libllmpart-runtime1, the library;
# libllmpart-runtime-dev, its header and the files by which pkg-config and CMake find it; python3-llmpart, the Python
# package over both.
set(package ${PROJECT_SOURCE_DIR}/cmake/package)
set(LP_PACKAGE_CONTACT "The llmpart authors <llmpart@example.org>" CACHE STRING "the maintainer that packages name")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME llmpart)
set(CPACK_PACKAGE_CONTACT ${LP_PACKAGE_CONTACT})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(date "Wed, 25 Nov 2026 12:00:00 +0000") # of the version
configure_file(${package}/changelog.in ${PROJECT_BINARY_DIR}/changelog @ONLY)
execute_process(COMMAND gzip -9nc ${PROJECT_BINARY_DIR}/changelog OUTPUT_FILE ${PROJECT_BINARY_DIR}/changelog.gz COMMAND_ERROR_IS_FATAL ANY)

# lp_deb(COMPONENT PACKAGE SECTION DEPENDS SUMMARY LINE...): the lines are the long description's last paragraph.
function(lp_deb component name section depends summary)
  string(TOUPPER ${component} key)
  string(JOIN "\n" text
    "llmpart splits a language model between a device and a machine in the"
    "cloud. It decides for each operator where it runs, so that limits on"
    "latency hold at the lowest cost, and compiles both parts."
    "." ${ARGN})
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_DEPENDS ${depends} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
  set(doc ${CMAKE_INSTALL_DATADIR}/doc/${name})
  install(FILES ${package}/copyright DESTINATION ${doc} COMPONENT ${component})
  install(FILES ${PROJECT_BINARY_DIR}/changelog.gz DESTINATION ${doc} COMPONENT ${component})
  if(EXISTS ${package}/${name}.overrides)
    install(FILES ${package}/${name}.overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides RENAME ${name}
            COMPONENT ${component})
  endif()
endfunction()

lp_deb(command llmpart devel lld-19 "compiler that splits language models between device and cloud"
       "This package contains the command, with compiler, runtime and server.")
lp_deb(runtime libllmpart-runtime1 libs "" "runtime of split language models"
       "This package contains the shared library that runs compiled models.")
lp_deb(development libllmpart-runtime-dev libdevel "libllmpart-runtime1 (= ${PROJECT_VERSION})"
       "runtime of split language models (development files)"
       "This package contains the header of the library, and the files by which"
       "pkg-config and CMake find it.")
set(version "(= ${PROJECT_VERSION})")
lp_deb(python python3-llmpart python
       "python3:any (>= 3.11), python3-cffi, llmpart ${version}, libllmpart-runtime1 ${version}"
       "split language models between device and cloud (Python)"
       "This package contains the Python package llmpart, which plans, compiles"
       "and generates by the command and the library.")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/llmpart DESTINATION lib/python3/dist-packages COMPONENT python
        EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.py" PATTERN py.typed PATTERN __pycache__ EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/runtime/library/llmpart.h DESTINATION lib/python3/dist-packages/llmpart
        COMPONENT python EXCLUDE_FROM_ALL)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${package}/python/postinst ${package}/python/prerm)
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "python3-pandas")
set(CPACK_DEBIAN_COMMAND_PACKAGE_RECOMMENDS "libcurl4, libmicrohttpd12") # loaded when `serve` and `route` need them
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS "openssl, ocl-icd-libopencl1")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${package}/triggers)
set(CPACK_COMPONENTS_ALL command runtime development python)
include(CPack)
