// game_id.h -- the 104 games, in alphabetical order: the order of the table and of games.py.
#pragma once

#include "../core/types.h"

namespace scanline::games {

// clang-format off
#define SCANLINE_GAMES(GAME)                                                                      \
  GAME(adventure) GAME(air_raid) GAME(alien) GAME(amidar) GAME(assault) GAME(asterix)             \
  GAME(asteroids) GAME(atlantis) GAME(atlantis2) GAME(backgammon) GAME(bank_heist)                \
  GAME(basic_math) GAME(battle_zone) GAME(beam_rider) GAME(berzerk) GAME(blackjack) GAME(bowling) \
  GAME(boxing) GAME(breakout) GAME(carnival) GAME(casino) GAME(centipede) GAME(chopper_command)   \
  GAME(crazy_climber) GAME(crossbow) GAME(darkchambers) GAME(defender) GAME(demon_attack)         \
  GAME(donkey_kong) GAME(double_dunk) GAME(earthworld) GAME(elevator_action) GAME(enduro)         \
  GAME(entombed) GAME(et) GAME(fishing_derby) GAME(flag_capture) GAME(freeway) GAME(frogger)      \
  GAME(frostbite) GAME(galaxian) GAME(gopher) GAME(gravitar) GAME(hangman) GAME(haunted_house)    \
  GAME(hero) GAME(human_cannonball) GAME(ice_hockey) GAME(jamesbond) GAME(journey_escape)         \
  GAME(kaboom) GAME(kangaroo) GAME(keystone_kapers) GAME(king_kong) GAME(klax) GAME(koolaid)      \
  GAME(krull) GAME(kung_fu_master) GAME(laser_gates) GAME(lost_luggage) GAME(mario_bros)          \
  GAME(miniature_golf) GAME(montezuma_revenge) GAME(mr_do) GAME(ms_pacman) GAME(name_this_game)   \
  GAME(othello) GAME(pacman) GAME(phoenix) GAME(pitfall) GAME(pitfall2) GAME(pong) GAME(pooyan)   \
  GAME(private_eye) GAME(qbert) GAME(riverraid) GAME(road_runner) GAME(robotank) GAME(seaquest)   \
  GAME(sir_lancelot) GAME(skiing) GAME(solaris) GAME(space_invaders) GAME(space_war)              \
  GAME(star_gunner) GAME(superman) GAME(surround) GAME(tennis) GAME(tetris) GAME(tic_tac_toe_3d)  \
  GAME(time_pilot) GAME(trondead) GAME(turmoil) GAME(tutankham) GAME(up_n_down) GAME(venture)     \
  GAME(video_checkers) GAME(video_chess) GAME(video_cube) GAME(video_pinball) GAME(wizard_of_wor) \
  GAME(word_zapper) GAME(yars_revenge) GAME(zaxxon)
// clang-format on

#define SCANLINE_GAME_ENUMERATOR(name) name,
enum class GameId : u8 { SCANLINE_GAMES(SCANLINE_GAME_ENUMERATOR) };
#undef SCANLINE_GAME_ENUMERATOR

#define SCANLINE_GAME_ONE(name) +1
constexpr u32 kNumGames = SCANLINE_GAMES(SCANLINE_GAME_ONE);
#undef SCANLINE_GAME_ONE

#if !SCANLINE_DEVICE
inline const char* game_name(GameId game) {
#define SCANLINE_GAME_NAME(name) #name,
  static constexpr const char* kNames[] = {SCANLINE_GAMES(SCANLINE_GAME_NAME)};
#undef SCANLINE_GAME_NAME
  return kNames[static_cast<u32>(game)];
}
#endif

}  // namespace scanline::games
