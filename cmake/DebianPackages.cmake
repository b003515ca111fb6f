# Debian packages by CPack (docs/install.md). Included last; the preset deb uses it.
#   spexd, spex, spexd-cuda   the programs and the CUDA engine, with their manual pages and completions
#   python3-spexd   the Python package, if the build has it
#   libspexd-dev, spexd-doc   the C++ client library; documents and examples
option(SPEXD_DEBIAN_PACKAGES "Install what belongs to Debian packages alone, below /etc and share/doc" OFF)
set(SPEXD_PACKAGE_CONTACT "spexd maintainers <spexd@example.org>" CACHE STRING "Maintainer whom packages name")
if(NOT SPEXD_DEBIAN_PACKAGES)
  return()
endif()

# spexd_package(NAME name COMPONENTS c ... TEXT "summary\n description"): the first component also gets the files that each
# package must have.
set(CPACK_COMPONENTS_ALL)
set(debian ${PROJECT_SOURCE_DIR}/deploy/debian)
macro(spexd_package)
  cmake_parse_arguments(PACKAGE "" "NAME;TEXT;SECTION;ARCHITECTURE;DEPENDS;RECOMMENDS;SUGGESTS" "COMPONENTS" ${ARGN})
  string(TOUPPER ${PACKAGE_NAME} package)
  list(APPEND CPACK_COMPONENTS_ALL ${PACKAGE_COMPONENTS})
  foreach(component IN LISTS PACKAGE_COMPONENTS)
    string(TOUPPER ${component} component)
    set(CPACK_COMPONENT_${component}_GROUP ${PACKAGE_NAME})
  endforeach()
  set(CPACK_DEBIAN_${package}_PACKAGE_NAME ${PACKAGE_NAME})
  set(CPACK_DEBIAN_${package}_DESCRIPTION "${PACKAGE_TEXT}")
  foreach(field SECTION ARCHITECTURE DEPENDS RECOMMENDS SUGGESTS)
    if(PACKAGE_${field})
      set(CPACK_DEBIAN_${package}_PACKAGE_${field} "${PACKAGE_${field}}")
    endif()
  endforeach()
  list(GET PACKAGE_COMPONENTS 0 first)
  install(FILES ${debian}/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${PACKAGE_NAME} COMPONENT ${first})
  install(FILES ${PROJECT_BINARY_DIR}/install/changelog.Debian.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${PACKAGE_NAME} COMPONENT ${first})
  configure_file(${debian}/lintian-overrides.in ${PROJECT_BINARY_DIR}/install/overrides/${PACKAGE_NAME} @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/install/overrides/${PACKAGE_NAME} DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides COMPONENT ${first})
endmacro()

find_program(GZIP gzip REQUIRED)
find_program(HELP2MAN help2man REQUIRED)  # without it, docs/reference omits the manual pages
string(TIMESTAMP SPEXD_PACKAGE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)  # $SOURCE_DATE_EPOCH overrides the clock
configure_file(${debian}/changelog.in ${PROJECT_BINARY_DIR}/install/changelog.Debian @ONLY)
execute_process(COMMAND ${GZIP} -9nfk changelog.Debian WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/install COMMAND_ERROR_IS_FATAL ANY)

# dpkg treats files below /etc as conffiles (deploy/debian/spexd/conffiles).
install(FILES deploy/systemd/spexd.conf DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/spexd COMPONENT service)

spexd_package(NAME spexd COMPONENTS spexd service spexd_reference SECTION science DEPENDS adduser SUGGESTS "spex, spexd-cuda, spexd-doc"
  TEXT "spectral extraction of CCD frames as a service
spexd takes jobs over gRPC, turns CCD frames of multi-fibre spectrographs into
spectra by spectroperfectionism, and streams them back as they are done.

The service is not started by the installation: it is configured in
/etc/spexd/spexd.conf, then systemctl enable --now spexd.")
spexd_package(NAME spex COMPONENTS spex spex_reference SECTION science RECOMMENDS "python3-matplotlib, python3-astropy" SUGGESTS "spexd, spexd-cuda, spexd-doc"
  TEXT "spectral extraction of CCD frames on the command line
spex turns CCD frames of multi-fibre spectrographs into spectra by
spectroperfectionism, in its own process or on spexd servers. It also
simulates, compares and draws frames.")
if(SPEXD_BUILD_CUDA)
  spexd_package(NAME spexd-cuda COMPONENTS cuda SECTION science DEPENDS "spexd (= ${PROJECT_VERSION}-1) | spex (= ${PROJECT_VERSION}-1) | python3-spexd (= ${PROJECT_VERSION}-1)"
    SUGGESTS "libcublas-${CUDAToolkit_VERSION_MAJOR}-${CUDAToolkit_VERSION_MINOR}"
    TEXT "spectral extraction of CCD frames: CUDA engine
A module that lets spexd, spex and python3-spexd extract on NVIDIA GPUs. It needs NVIDIA's
driver. Sky, velocities and redshifts on GPUs also need NVIDIA's cuBLAS.")
endif()
if(SPEXD_PYTHON)
  # The files that pip would install, but compiled by this build, for one version of Python.
  find_package(Python REQUIRED COMPONENTS Interpreter)
  set(python "${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}")
  math(EXPR next "${Python_VERSION_MINOR} + 1")
  set(metadata ${PROJECT_BINARY_DIR}/install/spexd-${PROJECT_VERSION}.dist-info)
  configure_file(${debian}/python3-spexd/METADATA.in ${metadata}/METADATA @ONLY)
  install(DIRECTORY python/spexd ${metadata} DESTINATION ${SPEXD_PYTHON_FOLDER} COMPONENT python PATTERN __pycache__ EXCLUDE)
  set(script spexd-extract-spectra)
  install(PROGRAMS ${debian}/python3-spexd/${script} DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT python)
  set(reference ${PROJECT_BINARY_DIR}/reference/python)
  install(FILES ${reference}/man/${script}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT python)
  install(FILES ${reference}/bash/${script} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT python)
  install(FILES ${reference}/zsh/_${script} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT python)
  install(FILES ${reference}/fish/${script}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT python)
  spexd_package(NAME python3-spexd COMPONENTS python SECTION python
    DEPENDS "python3 (>= ${python}), python3 (<< ${Python_VERSION_MAJOR}.${next}), python3-numpy"
    RECOMMENDS "python3-grpcio, python3-protobuf, python3-astropy, python3-scipy"
    SUGGESTS "python3-matplotlib, python3-tqdm, python3-distributed, spex, spexd, spexd-cuda, spexd-doc"
    TEXT "spectral extraction of CCD frames: Python package
The module spexd extracts spectra from CCD frames of multi-fibre
spectrographs, in its own process or on spexd servers (with python3-grpcio).
spexd-extract-spectra takes the command line of desi_extract_spectra.")
  set(CPACK_DEBIAN_PYTHON3-SPEXD_PACKAGE_CONTROL_EXTRA ${debian}/python3-spexd/postinst ${debian}/python3-spexd/prerm)
  set(CPACK_DEBIAN_PYTHON3-SPEXD_PACKAGE_CONTROL_STRICT_PERMISSION ON)
endif()
spexd_package(NAME libspexd-dev COMPONENTS dev SECTION libdevel
  DEPENDS "libabsl-dev, libcfitsio-dev, libdeflate-dev, liberfa-dev, libgrpc++-dev, libhwy-dev, libisal-dev, libprotobuf-dev, libssl-dev, pkg-config, protobuf-compiler-grpc, zlib1g-dev"
  TEXT "spectral extraction of CCD frames: C++ client library
Static libraries, headers, CMake package and protocol files of clients of
spexd, the service that extracts spectra from CCD frames.")
spexd_package(NAME spexd-doc COMPONENTS doc SECTION doc ARCHITECTURE all
  TEXT "spectral extraction of CCD frames: documents
Documents of spexd and spex, and examples of configuration, alerts and a
dashboard.")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own: the first line of its text
set(CPACK_PACKAGE_CONTACT "${SPEXD_PACKAGE_CONTACT}")
set(CPACK_OUTPUT_FILE_PREFIX ${PROJECT_BINARY_DIR}/packages)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_SET_DESTDIR ON)  # the unit contains the program's final path
set(CPACK_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/CompressManualPages.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_SPEXD-DOC_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_SPEXD_PACKAGE_CONTROL_EXTRA
  ${debian}/spexd/conffiles ${debian}/spexd/postinst ${debian}/spexd/prerm ${debian}/spexd/postrm)
set(CPACK_DEBIAN_SPEXD_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
