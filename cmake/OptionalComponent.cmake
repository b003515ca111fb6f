# spexd_optional_component(name target file): `cmake --install` leaves the component out, and says so, where `file`, which `target`
# makes, has not been built. Its own install() calls are OPTIONAL.
function(spexd_optional_component name target file)
  install(CODE "
    if(NOT EXISTS \"${file}\")
      message(STATUS \"Left out: ${name}, which has not been built (cmake --build ${PROJECT_BINARY_DIR} --target ${target})\")
    endif()" COMPONENT ${name})
endfunction()
