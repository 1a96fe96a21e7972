// games_probe.cpp -- games/ behind a C interface, for tests that feed it memory from ALE.
//
// The memory of one frame is 128 bytes; the cartridge's own memory is not seen by ALE's callers,
// so klax is tested with the console instead.
#include "../../native/games/modes.h"
#include "../../native/games/step.h"
#include "../../native/games/table.h"

namespace {

using namespace scanline;
using namespace scanline::games;

struct Bytes {
  const u8* bytes;
  u8 ram(u8 address) const { return bytes[address & 0x7F]; }
  u8 cartridge(u16) const { return 0; }
};

const GameRow& row(u32 game) { return row_of(static_cast<GameId>(game)); }

}  // namespace

extern "C" {

u32 num_games() { return kNumGames; }
const char* name(u32 game) { return game_name(static_cast<GameId>(game)); }
u32 minimal_actions(u32 game) { return row(game).minimal_actions & row(game).legal_actions; }
u32 legal_actions(u32 game) { return row(game).legal_actions; }
u32 difficulties(u32 game) { return row(game).difficulties; }
u32 num_game_modes(u32 game) { return num_modes(row(game)); }
u32 game_mode(u32 game, u32 index) { return mode_at(row(game), index); }
u32 state_bytes() { return sizeof(GameState); }
void reset_state(u32 game, GameState* state) { reset(row(game), *state); }

void step_state(u32 game, GameState* state, const u8* ram) { step(row(game), *state, Bytes{ram}); }

}  // extern "C"
