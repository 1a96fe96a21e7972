// types.h -- fixed-width integers and the host/device annotation.
//
// The core includes no standard header, so that the same text compiles with g++, clang, nvcc,
// NVRTC (which has no host headers at all) and as C++ for OpenCL.
#pragma once

#if defined(__CUDACC__)
#define SCANLINE_HD __host__ __device__
#else
#define SCANLINE_HD
#endif

// SCANLINE_DEVICE: this text is compiled for a GPU, or for what poses as one. SCANLINE_TABLE begins
// a constant table inside of a function; OpenCL keeps those in an address space of their own.
#if defined(__CUDA_ARCH__) || defined(__OPENCL_CPP_VERSION__)
#define SCANLINE_DEVICE 1
#else
#define SCANLINE_DEVICE 0
#endif
#if defined(__OPENCL_CPP_VERSION__)
#define SCANLINE_TABLE static __constant constexpr
#else
#define SCANLINE_TABLE static constexpr
#endif

#if defined(__CUDA_ARCH__)
#define SCANLINE_INLINE __forceinline__
#define SCANLINE_NOINLINE __noinline__
#elif defined(__GNUC__)
#define SCANLINE_INLINE inline __attribute__((always_inline))
#define SCANLINE_NOINLINE __attribute__((noinline))
#else
#define SCANLINE_INLINE inline
#define SCANLINE_NOINLINE
#endif

#if defined(__GNUC__) || defined(__CUDACC__)
#define SCANLINE_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#else
#define SCANLINE_UNLIKELY(condition) (condition)
#endif

namespace scanline {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
#if defined(__OPENCL_CPP_VERSION__)
using u64 = unsigned long;  // 64 bits there; long long is reserved
using i64 = long;
#else
using u64 = unsigned long long;
using i64 = long long;
#endif
using i8 = signed char;
using i16 = short;
using i32 = int;

static_assert(sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(u64) == 8, "integer widths");

}  // namespace scanline
