# Folders of the installation (GNUInstallDirs), and the files that belong to no target. Each install() names a component:
#   spexd, spex   the programs and the scripts that they run
#   cuda          the CUDA engine's module
#   service       systemd's unit
#   spexd_reference, spex_reference   their manual pages and completions (docs/reference)
#   python        the Python package, for pip and for the package python3-spexd
#   dev           the CMake package of the C++ client library (cmake/Package.cmake)
#   doc           documents, example configuration and licence
include(GNUInstallDirs)
include(OptionalComponent)

set(SPEXD_INSTALL_MODULES ${CMAKE_INSTALL_LIBDIR}/spexd)
set(SPEXD_INSTALL_DATA ${CMAKE_INSTALL_DATADIR}/spexd)

# Folder of the Python package's files: the root of a wheel, or the folder of Debian's Python (cmake/DebianPackages.cmake).
set(SPEXD_PYTHON_FOLDER . CACHE STRING "Folder of the Python package, below the prefix")

# The programs and the package find modules and data relative to their own folder (core/base/install_paths.h.in).
file(RELATIVE_PATH SPEXD_MODULES_FROM_PROGRAMS ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/spexd)
cmake_path(ABSOLUTE_PATH SPEXD_PYTHON_FOLDER BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} NORMALIZE OUTPUT_VARIABLE python_folder)
file(RELATIVE_PATH SPEXD_MODULES_FROM_PYTHON ${python_folder}/spexd ${CMAKE_INSTALL_FULL_LIBDIR}/spexd)
file(RELATIVE_PATH SPEXD_DATA_FROM_PROGRAMS ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_DATADIR}/spexd)

# The unit contains the program's full path, which `cmake --install --prefix` may still change.
set(SPEXD_INSTALL_UNITS lib/systemd/system CACHE STRING "Folder of systemd's units, below the prefix")
install(CODE "
  file(READ \"${PROJECT_SOURCE_DIR}/deploy/systemd/spexd.service\" unit)
  set(programs \"${CMAKE_INSTALL_BINDIR}\")
  cmake_path(ABSOLUTE_PATH programs BASE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}\")
  string(REPLACE /usr/local/bin/ \"\${programs}/\" unit \"\${unit}\")
  file(WRITE \"${PROJECT_BINARY_DIR}/install/spexd.service\" \"\${unit}\")" COMPONENT service)
install(FILES ${PROJECT_BINARY_DIR}/install/spexd.service DESTINATION ${SPEXD_INSTALL_UNITS} COMPONENT service)

# Arranged as in the sources, so that links between documents work.
set(documents ${CMAKE_INSTALL_DOCDIR})
install(FILES README.md LICENSE DESTINATION ${documents} COMPONENT doc)
install(DIRECTORY docs DESTINATION ${documents} COMPONENT doc
  PATTERN reference EXCLUDE PATTERN conf.py EXCLUDE PATTERN index.md EXCLUDE PATTERN api.md EXCLUDE)
install(FILES server/README.md DESTINATION ${documents}/server COMPONENT doc)
install(FILES server/detached/README.md DESTINATION ${documents}/server/detached COMPONENT doc)
install(FILES client/README.md DESTINATION ${documents}/client COMPONENT doc)
install(DIRECTORY deploy DESTINATION ${documents} COMPONENT doc PATTERN alerts_test.yml EXCLUDE PATTERN debian EXCLUDE PATTERN make_dashboard.py EXCLUDE PATTERN __pycache__ EXCLUDE)
