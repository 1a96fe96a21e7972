// warp.h -- a warp of 32 lanes on the host: what C++ made of PTX (benchmarks/ptx_code.py) runs on.
//
// A function is a list of blocks, each a step over the lanes of a mask. Where lanes part, both
// sides run one after the other and meet at the block's immediate post-dominator, as on a GPU;
// every issue of a block and its lanes are counted. For benchmarks and tests; no part of the
// product.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef u8 b8;
typedef u16 b16;
typedef u32 b32;
typedef u64 b64;
typedef float f32;
typedef double f64;
typedef bool pred;
static u32 g_block_index, g_num_lanes;
alignas(16) static u8 g_shared[1 << 17];
template <class To, class From>
static To bits(From from) {
  To to{};
  memcpy(&to, &from, sizeof(To) < sizeof(From) ? sizeof(To) : sizeof(From));
  return to;
}
static u32 prmt(u32 a, u32 b, u32 s) {
  const u64 all = u64(b) << 32 | a;
  u32 r = 0;
  for (u32 i = 0; i < 4; ++i) {
    const u32 byte = u32(all >> (8 * (s >> 4 * i & 7))) & 255;
    r |= (s >> 4 * i & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * i;
  }
  return r;
}
static u64 bfi(u64 a, u64 b, u32 at, u32 n, u32 width) {
  if (at >= width || n == 0) return b;
  const u64 ones = (n >= 64 ? ~u64(0) : (u64(1) << n) - 1) << at;
  return (b & ~ones) | (a << at & ones);
}
static u64 bfe(u64 a, u32 at, u32 n, u32 width) {
  if (at >= width || n == 0) return 0;
  return a >> at & (n >= 64 ? ~u64(0) : (u64(1) << n) - 1);
}
static u32 lop3(u32 a, u32 b, u32 c, u32 t) {
  u32 r = 0;
  for (u32 i = 0; i < 8; ++i)
    if (t >> i & 1) r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return r;
}
static u32 reversed(u32 x) {
  u32 r = 0;
  for (u32 i = 0; i < 32; ++i) r |= (x >> i & 1) << (31 - i);
  return r;
}
static u64 left(u64 x, u32 n, u32 width) { return n >= width ? 0 : x << n; }
static u64 right(u64 x, u32 n, u32 width) { return n >= width ? 0 : x >> n; }
static s64 signed_right(s64 x, u32 n, u32 width) { return x >> (n >= width ? width - 1 : n); }
struct Entry {
  int block, meet;
  u32 mask;
};
struct Node {
  int first, count, meet;
};
static void meet_all(u32 mask, u32 asked) {
  if (mask != asked) {
    fprintf(stderr, "a joint instruction without all lanes\n");
    abort();
  }
}
template <class F>
static void run(F& f, u32 (*const* steps)(F&, u32), const Node* nodes, const int* edges, u32 mask,
                u64* counts) {
  std::vector<Entry> stack{{0, -1, mask}};
  while (!stack.empty()) {
    Entry& top = stack.back();
    if (top.block == top.meet) {
      stack.pop_back();
      continue;
    }
    const int number = top.block;
    const u32 active = top.mask;
    const Node node = nodes[number];
    counts[2 * number] += 1;
    counts[2 * number + 1] += u32(__builtin_popcount(active));
    const u32 taken = steps[number](f, active);
    Entry& now = stack.back();
    if (node.count == 1) {
      now.block = edges[node.first];
      continue;
    }
    if (node.count == 2 && (taken == 0 || taken == active)) {
      now.block = edges[node.first + (taken ? 1 : 0)];
      continue;
    }
    now.block = node.meet;
    for (int way = 0; way < node.count; ++way) {
      u32 part = way ? taken : active & ~taken;
      if (node.count > 2) {
        part = 0;
        for (u32 m = active; m; m &= m - 1)
          if (f.way[__builtin_ctz(m)] == u32(way)) part |= m & -m;
      }
      if (part && edges[node.first + way] != node.meet)
        stack.push_back({edges[node.first + way], node.meet, part});
    }
  }
}
