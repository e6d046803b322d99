# Libraries of the tests, benchmarks and tools: the installed ones if there are any, else these releases are downloaded.
# The library itself needs none of them.
include(FetchContent)

set(BUILD_GMOCK OFF)
set(INSTALL_GTEST OFF)
set(BENCHMARK_ENABLE_TESTING OFF)
set(BENCHMARK_ENABLE_INSTALL OFF)
set(JSON_BuildTests OFF)
set(CLI11_BUILD_TESTS OFF)
set(CLI11_BUILD_EXAMPLES OFF)

FetchContent_Declare(
  googletest SYSTEM
  URL https://github.com/google/googletest/archive/refs/tags/v1.14.0.tar.gz
  URL_HASH SHA256=8ad598c73ad796e0d8280b082cebd82a630d73e73cd3c70057938a6501bba5d7
  FIND_PACKAGE_ARGS NAMES GTest)
FetchContent_Declare(
  benchmark SYSTEM
  URL https://github.com/google/benchmark/archive/refs/tags/v1.8.3.tar.gz
  URL_HASH SHA256=6bc180a57d23d4d9515519f92b0c83d61b05b5bab188961f36ac7b06b0d9e9ce
  FIND_PACKAGE_ARGS)
FetchContent_Declare(
  nlohmann_json SYSTEM
  URL https://github.com/nlohmann/json/releases/download/v3.11.3/json.tar.xz
  URL_HASH SHA256=d6c65aca6b1ed68e7a182f4757257b107ae403032760ed6ef121c9d55e81757d
  FIND_PACKAGE_ARGS)
FetchContent_Declare(
  cli11 SYSTEM
  URL https://github.com/CLIUtils/CLI11/archive/v2.3.2.tar.gz
  URL_HASH SHA256=aac0ab42108131ac5d3344a9db0fdf25c4db652296641955720a4fbe52334e22
  FIND_PACKAGE_ARGS NAMES CLI11)
# Eigen's own build adds hundreds of targets for headers that need none: SOURCE_SUBDIR names a directory that it lacks.
FetchContent_Declare(
  eigen
  URL https://gitlab.com/libeigen/eigen/-/archive/3.4.0/eigen-3.4.0.tar.bz2
  URL_HASH SHA256=b4c198460eba6f28d34894e3a5710998818515104d6e74e5cc331ce31e46e626
  SOURCE_SUBDIR headers-only
  FIND_PACKAGE_ARGS NAMES Eigen3)

# Makes the named dependencies available as GTest::*, benchmark::*, nlohmann_json::nlohmann_json, CLI11::CLI11,
# Eigen3::Eigen.
macro(rotary_need)
  FetchContent_MakeAvailable(${ARGN})
  if(eigen_SOURCE_DIR AND NOT TARGET Eigen3::Eigen)
    add_library(Eigen3::Eigen INTERFACE IMPORTED)
    target_include_directories(Eigen3::Eigen SYSTEM INTERFACE "${eigen_SOURCE_DIR}")
  endif()
endmacro()
