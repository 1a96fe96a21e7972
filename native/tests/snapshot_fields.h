// snapshot_fields.h -- where every field of a snapshot lies, from the lists that declare them.
//
// Takes the types of the parts; gives name, offset, width and count of each field, nested structs
// resolved. Relies on the absence of padding, which the structs assert.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "../cpu/game_batch.h"
#include "../env/ale_snapshot.h"

namespace scanline {

struct Field {
  std::string name;
  u32 offset, width, count;  // bytes behind the header; bytes of one element; elements
};

class FieldTable {
 public:
  std::vector<Field> fields;
  u32 size = 0;

  template <class Ale>
  static FieldTable of() {
    FieldTable table;
    table.add_environment<Ale>();
    return table;
  }
  // Of an environment in a batch: its episode and its pooled picture as well.
  static FieldTable of_slot(u32 pooled_bytes) {
    FieldTable table;
    table.add_environment<GameEnvironment::Ale>();
    table.add(Tag<EpisodeState>(), "episode", 1);
    if (pooled_bytes > 0) table.add(Tag<u8>(), "pooled", pooled_bytes);
    return table;
  }

 private:
  template <class Type>
  struct Tag {};

  template <class Ale>
  void add_environment() {
    add(Tag<MachineState>(), "machine", 1);
    add(Tag<CartridgeState>(), "cartridge", 1);
    add(Tag<u8>(), "pictures", 2 * kPictureBytes);
    add(Tag<AleState>(), "state", 1);
    add(Tag<decltype(Ale::Snapshot::random)>(), "random", 1);
  }

  template <class Type>
  void add(Tag<Type>, const std::string& name, u32 count) {
    static_assert(std::is_arithmetic<Type>::value, "a struct needs its list below");
    fields.push_back({name, size, u32(sizeof(Type)), count});
    size += u32(sizeof(Type)) * count;
  }
#define SCANLINE_ADD_SCALAR(type, name, bound) add(Tag<type>(), prefix + #name, 1);
#define SCANLINE_ADD_ARRAY(type, name, count, bound) add(Tag<type>(), prefix + #name, count);
#define SCANLINE_ADD(Struct, FIELDS)                    \
  void add(Tag<Struct>, const std::string& name, u32) { \
    const std::string prefix = name + ".";              \
    FIELDS(SCANLINE_ADD_SCALAR, SCANLINE_ADD_ARRAY)     \
  }
  SCANLINE_ADD(MachineState, SCANLINE_STATE_FIELDS)
  SCANLINE_ADD(CartridgeState, SCANLINE_CARTRIDGE_FIELDS)
  SCANLINE_ADD(games::GameState, SCANLINE_GAME_STATE_FIELDS)
  SCANLINE_ADD(AleState, SCANLINE_ALE_FIELDS)
  SCANLINE_ADD(MersenneTwister, SCANLINE_TWISTER_FIELDS)
  SCANLINE_ADD(EnvRandom, SCANLINE_ENV_RANDOM_FIELDS)
  SCANLINE_ADD(EpisodeState, SCANLINE_EPISODE_FIELDS)
#undef SCANLINE_ADD_SCALAR
#undef SCANLINE_ADD_ARRAY
#undef SCANLINE_ADD
  void add(Tag<EnvStream>, const std::string& name, u32) { add(Tag<u32>(), name + ".words", 3); }
};

}  // namespace scanline
