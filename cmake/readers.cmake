# PCRE2 and utf8proc for the tokenizers, libpng and libjpeg-turbo for pictures: as the target isonorm_readers, or else
# ISONORM_READERS_MISSING with the names of Debian's packages. Used by the build, and by the installed package file of a
# static library.

set(ISONORM_READERS_MISSING)
set(isonorm_includes)
set(isonorm_libraries)
foreach(isonorm_reader "pcre2.h pcre2-8 libpcre2-dev" "utf8proc.h utf8proc libutf8proc-dev" "png.h png libpng-dev"
               "jpeglib.h jpeg libjpeg-dev")
  string(REPLACE " " ";" isonorm_reader "${isonorm_reader}")
  list(GET isonorm_reader 0 isonorm_header)
  list(GET isonorm_reader 1 isonorm_library)
  list(GET isonorm_reader 2 isonorm_package)
  string(MAKE_C_IDENTIFIER "ISONORM_${isonorm_library}" isonorm_name)
  find_path(${isonorm_name}_INCLUDE ${isonorm_header})
  find_library(${isonorm_name}_LIBRARY ${isonorm_library})
  mark_as_advanced(${isonorm_name}_INCLUDE ${isonorm_name}_LIBRARY)
  if(NOT ${isonorm_name}_INCLUDE OR NOT ${isonorm_name}_LIBRARY)
    list(APPEND ISONORM_READERS_MISSING ${isonorm_package})
  endif()
  list(APPEND isonorm_includes ${${isonorm_name}_INCLUDE})
  list(APPEND isonorm_libraries ${${isonorm_name}_LIBRARY})
endforeach()
if(NOT ISONORM_READERS_MISSING AND NOT TARGET isonorm_readers)
  add_library(isonorm_readers INTERFACE IMPORTED GLOBAL)
  target_include_directories(isonorm_readers SYSTEM INTERFACE ${isonorm_includes})
  target_link_libraries(isonorm_readers INTERFACE ${isonorm_libraries})
endif()
