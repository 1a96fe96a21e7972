// table.h -- the 104 games as data: one row each, in alphabetical order.
//
// Addresses are the console's own, 0x80..0xFF, and in hexadecimal, as are bytes; points, frames
// and modes are decimal. The facts are those of ALE 0.12.1 and are checked against it frame by
// frame (tests/conformance). How to read a row: row.h. The table stays on the host; a kernel gets
// the rows of its games as an argument.
#pragma once

#include "row.h"

namespace scanline::games {

// Sets of difficulty switches: bit 0 none, bit 1 left, bit 2 right, bit 3 both in position A.
constexpr u8 kLeftSwitch = 0b0011, kRightSwitch = 0b0101, kBothSwitches = 0b1111;

constexpr bool in_order(const GameRow (&rows)[kNumGames]) {
  for (u32 i = 0; i < kNumGames; ++i) {
    if (rows[i].game != static_cast<GameId>(i)) return false;
  }
  return true;
}

inline const GameRow& row_of(GameId id) {
  using namespace words;
  using G = GameId;
  using D = Decoder;
  static constexpr GameRow kRows[kNumGames] = {
      coded(G::adventure)
          .has(lives_rule(LivesRule::kOne))
          .plays(select_by(SelectRule::kAdventure), range(0, 3))
          .offers(kBothSwitches),
      game(G::air_raid)
          .scores(bcd(1, 0xAA, 0xA9, 0xA8))
          .ends(ram(0xA7) == 0xFF)
          .acts(kStill | kSides | kSidesFire)
          .plays(press(0xAA, 10).opened_by(20), range(1, 8))
          .begins(run(kFire)),
      game(G::alien)
          .scores(digits(D::kEighth, 10, 0x8B, 0x89, 0x87, 0x85, 0x83))
          .has(lives_at(0xC0, 0x0F))
          .ends(lives == 0)
          .plays(press(0x81, 1), range(0, 4))
          .offers(kBothSwitches),
      game(G::amidar)
          .scores(bcd(1, 0xD9, 0xDA, 0xDB))
          .has(lives_at(0xD6, 0x0F))
          .ends(ram(0xD6) == 0x80)
          .acts(kStill | kCross | kCrossFire)
          .offers(0b1001),
      game(G::assault)
          .scores(bcd(1, 0x82, 0x81, 0x80))
          .has(lives_at(0xE5))
          .ends(lives == 0)
          .acts(kStill | set_of(kUp) | kSides | kSidesFire),
      game(G::asterix)
          .scores(bcd(1, 0xE0, 0xDF, 0xDE))
          .has(lives_at(0xD3, 0x0F))
          .ends(ram(0xC7) == 0x01 && lives == 1)
          .acts(kWithoutFire)
          .begins(run(kFire)),
      game(G::asteroids)
          .scores(bcd(10, 0xBE, 0xBD), DeltaRule::kWraps, 100000)
          .has(lives_at(0xBC, 0xF0, 4))
          .ends(lives == 0)
          .acts(kStill | kCross | kCrossFire | set_of(kUpRight, kUpLeft, kUpRightFire, kUpLeftFire))
          .plays(press(0x80, 2), range(0, 32), range(128, 1))
          .offers(0b1001),
      game(G::atlantis)
          .scores(bcd(100, 0xA2, 0xA3, 0xA1))
          .has(lives_at(0xF1))
          .ends(ram(0xF1) == 0xFF, EndRule::kKeepsScore)
          .acts(kStill | kSidesFire)
          .plays(press(0x8D, 2), range(0, 4)),
      game(G::atlantis2)
          .scores(bcd(1, 0xA1, 0xA2, 0xA3))
          .has(lives_at(0xF1))
          .ends(ram(0xF1) == 0xFF, EndRule::kKeepsScore)
          .acts(kStill | kSidesFire),
      coded(G::backgammon)
          .acts(set_of(kFire) | kSides)
          .plays(press(0xDC, 1).at(1, 3), range(0, 1))
          .offers(0b1000),
      game(G::bank_heist)
          .scores(bcd(1, 0xDA, 0xD9, 0xD8))
          .has(lives_at(0xD5))
          .ends(ram(0xCE) == 0x01 && lives == 0)
          .plays(press(0x80, 1), range(0, 8, 4))
          .offers(kBothSwitches),
      game(G::basic_math)
          .scores(bcd(1, 0x84))
          .ends(ram(0x86) != 0)
          .acts(kStill | kCross)
          .plays(press(0xC5, 2), range(5, 4))
          .offers(0b1101),
      game(G::battle_zone)
          .scores(one(0x9D, D::kHighDigit, 1000)
                      .plus(0x9E, D::kLowDigit, 10000)
                      .plus(0x9E, D::kHighDigit, 100000))
          .has(lives_at(0xBA, 0x0F))
          .ends(lives == 0)
          .plays(press(0xA1, 2), range(1, 3)),
      game(G::beam_rider)
          .scores(bcd(1, 0x89, 0x8A, 0x8B))
          .has(lives_at(0x85).plus(1).from(3).gated(LivesRule::kDropWhile, ram(0x8C) == 0x01))
          .ends(ram(0x85) == 0xFF)
          .acts(kStill | set_of(kUp, kUpRight, kUpLeft) | kSides | kSidesFire)
          .begins(run(kRight))
          .offers(kLeftSwitch),
      game(G::berzerk)
          .scores(bcd(1, 0xDF, 0xDE, 0xDD))
          .has(lives_at(0xDA).plus(1))
          .ends(ram(0xDA) == 0xFF)
          .plays(press(0x80, 2).after(20), range(1, 9), range(16, 3)),
      game(G::blackjack)
          .scores(bcd(1, 0x89, 0x86).blank_when(ram(0x86) == 0x0B && ram(0x89) == 0xBB))
          .ends((ram(0x86) == 0x0B && ram(0x89) == 0xBB) || score >= 1000)
          .acts(kStill | set_of(kUp, kDown))
          .offers(kBothSwitches),
      game(G::bowling)
          .scores(bcd(1, 0xA1, 0xA6))
          .has(no_lives())
          .ends(ram(0xA4) > 0x10)
          .acts(kStill | set_of(kUp, kDown, kUpFire, kDownFire))
          .plays(press(0x82, 2), range(0, 3, 2))
          .offers(kLeftSwitch),
      game(G::boxing)
          .scores(difference(D::kKnockout, 0x92, 0x93))
          .has(no_lives())
          .ends(ram(0x92, D::kKnockout) == 100 || ram(0x93, D::kKnockout) == 100 ||
                (ram(0x90, 0xF0) == 0 && ram(0x91) == 0))
          .offers(kBothSwitches),
      game(G::breakout)
          .scores(one(0xCD, D::kBcd).plus(0xCC, D::kLowNibble, 100))
          .has(lives_at(0xB9))
          .latches(ram(0xB9) == 5)
          .ends(latched == 1 && lives == 0)
          .acts(kStill | kSides)
          .plays(press(0xB2, 1), range(0, 12, 4))
          .offers(kLeftSwitch),
      game(G::carnival)
          .scores(bcd(10, 0xAE, 0xAD))
          .has(no_lives())
          .ends(ram(0x83) == 0)
          .acts(kStill | kSides | kSidesFire),
      coded(G::casino)
          .acts(kStill | set_of(kUp, kDown))
          .plays(press(0xD4, 2), range(0, 1), range(2, 2))
          .begins(run(kNoop, 60), run(kFire, 2))
          .offers(kBothSwitches),
      game(G::centipede)
          .scores(bcd(1, 0xF6, 0xF5, 0xF4), DeltaRule::kNotNegative)
          .has(lives_at(0xED, 0x70, 4).plus(1))
          .ends(ram(0xA6, 0x40) != 0)
          .plays(press(0xA7, 2), range(22, 2, 64)),
      game(G::chopper_command)
          .scores(bcd(100, 0xEE, 0xEC))
          .has(lives_at(0xE4, 0x0F))
          .latches(ram(0xC2, 0x01) == 1)
          .ends(latched == 1 && lives == 0)
          .plays(press(0xE0, 2), range(0, 2, 2))
          .offers(kLeftSwitch),
      game(G::crazy_climber)
          .scores(digits(D::kRaw, 100, 0x82, 0x83, 0x84, 0x85), DeltaRule::kNotNegative)
          .has(lives_at(0xAA))
          .ends(lives == 0)
          .acts(kWithoutFire)
          .plays(press(0x80, 2), range(0, 4))
          .offers(kLeftSwitch),
      game(G::crossbow)
          .scores(bcd(1, 0x8D, 0x8C, 0x8B))
          .ends(ram(0xE7) == 0x82)
          .plays(press(0x8D, 2).at(1, 1), range(0, 4, 2))
          .offers(kLeftSwitch),
      coded(G::darkchambers).begins(run(kNoop, 486)),
      game(G::defender)
          .scores(digits(D::kLowDigit, 1, 0x9C, 0x9D, 0x9E, 0x9F, 0xA0, 0xA1))
          .has(lives_at(0xC2))
          .ends(lives == 0)
          .plays(press(0x9B, 2), range(1, 9), range(16, 1))
          .offers(kLeftSwitch),
      game(G::demon_attack)
          .scores(bcd(1, 0x85, 0x83, 0x81)
                      .blank_when(ram(0x81) == 0xAB && ram(0x83) == 0xCD && ram(0x85) == 0xEA))
          .has(lives_at(0xF2).plus(1))
          .ends(ram(0xF2) == 0 && ram(0xF1) == 0xBD)
          .acts(kStill | kSides | kSidesFire)
          .plays(press(0xEA, 1), range(1, 4, 2))
          .masks_end_after_mode()
          .offers(kLeftSwitch),
      game(G::donkey_kong)
          .scores(bcd(100, 0x88, 0x87))
          .has(lives_at(0xA3))
          .ends(lives == 0 && ram(0x8F) == 0x03 && ram(0x8B) == 0x1F),
      game(G::double_dunk)
          .scores(difference(D::kBcd, 0xF6, 0xF7))
          .has(no_lives())
          .ends((ram(0xF6, D::kBcd) >= 24 && ram(0xFE) == 0xE7) ||
                (ram(0xF7, D::kBcd) >= 24 && ram(0xFE) == 0xE7))
          .plays(select_by(SelectRule::kDoubleDunk), range(0, 16))
          .begins(run(kUpFire)),
      game(G::earthworld).scores(bcd(1, 0xA7)).ends(score == 10),
      game(G::elevator_action)
          .scores(bcd(1, 0x89, 0x88, 0x87))
          .has(lives_at(0x83))
          .ends(lives == 0 && ram(0x81) != 0)
          .begins(run(kFire, 16)),
      coded(G::enduro)
          .has(no_lives())
          .acts(kStill | kSides | set_of(kDown, kDownRight, kDownLeft) | kSidesFire)
          .begins(run(kFire)),
      game(G::entombed)
          .scores(one(0xE3, D::kRaw))
          .ends(ram(0xC7, 0x03) == 0)
          .begins(run(kFire), run(kNoop, 5))
          .offers(kRightSwitch),
      game(G::et)
          .scores(bcd(1, 0xE1, 0xE0, 0xDF))
          .has(lives_at(0xE5).plus(1).in_signed_byte())
          .ends(lives == 0 && ram(0x80) == 0x08)
          .plays(press(0xEA, 25).at(1, 1), range(0, 3))
          .offers(kBothSwitches),
      game(G::fishing_derby)
          .scores(difference(D::kBcd, 0xBD, 0xBE))
          .has(no_lives())
          .ends(ram(0xBD) == 0x99 || ram(0xBE) == 0x99)
          .offers(kBothSwitches),
      game(G::flag_capture)
          .scores(bcd(1, 0xEA))
          .ends(ram(0xEB) == 0)
          .plays(press(0xD6, 2), range(8, 3)),
      game(G::freeway)
          .scores(bcd(1, 0xE7), DeltaRule::kZeroOrOne)
          .has(no_lives())
          .ends(ram(0x96) == 1)
          .acts(set_of(kNoop, kUp, kDown))
          .plays(press(0x80, 1), range(0, 8))
          .offers(kLeftSwitch),
      game(G::frogger)
          .scores(bcd(1, 0xCE, 0xCC))
          .has(lives_at(0xD0))
          .ends(ram(0xD0) == 0xFF)
          .acts(set_of(kNoop) | kCross)
          .plays(press(0xDD, 2).at(2, 1), range(0, 3))
          .offers(kLeftSwitch),
      game(G::frostbite)
          .scores(bcd(1, 0xCA, 0xC9, 0xC8))
          .has(lives_at(0xCC, 0x0F).plus(1))
          .ends(ram(0xCC, 0x0F) == 0 && ram(0xF1, 0x80) != 0)
          .plays(press(0x80, 1), range(0, 2, 2)),
      game(G::galaxian)
          .scores(bcd(1, 0xAE, 0xAD, 0xAC), DeltaRule::kWraps, 1000000)
          .has(lives_at(0xB9).plus(1))
          .ends(ram(0xBF, 0x80) != 0)
          .acts(kStill | kSides | kSidesFire)
          .plays(press(0xB3, 1), range(1, 9))
          .offers(kLeftSwitch),
      game(G::gopher)
          .scores(bcd(1, 0xB2, 0xB1, 0xB0))
          .has(lives_rule(LivesRule::kBitCount, 0xB4, 0x07))
          .ends(ram(0xB4, 0x07) == 0)
          .acts(kStill | set_of(kUp, kUpFire) | kSides | kSidesFire)
          .plays(press(0xD3, 5).after_reset(), range(0, 2, 2))
          .begins(run(kFire))
          .offers(kLeftSwitch),
      game(G::gravitar)
          .scores(bcd(1, 0x89, 0x88, 0x87))
          .has(lives_at(0x84).plus(1).gated(LivesRule::kReadElse, ram(0x81) != 0, 6))
          .ends(ram(0x81) == 0x01)
          .plays(press(0x80, 10), range(0, 5))
          .begins(run(kFire, 16)),
      coded(G::hangman).plays(press(0xEE, 2), range(0, 4)).offers(kLeftSwitch),
      coded(G::haunted_house)
          .has(lives_at(0x96))
          .plays(press(0xCC, 2), range(0, 9))
          .offers(kLeftSwitch),
      game(G::hero)
          .scores(bcd(1, 0xB9, 0xB8, 0xB7))
          .has(lives_at(0xB3))
          .ends(lives == 0)
          .plays(press(0x80, 1), range(0, 5)),
      game(G::human_cannonball)
          .scores(bcd(1, 0xB6))
          .ends(score == 7 || ram(0xB7, D::kBcd) == 7)
          .plays(press(0xB6, 2).at(1, 1).also(0xB7, 1), range(0, 8))
          .offers(kLeftSwitch),
      game(G::ice_hockey)
          .scores(difference(D::kBcd, 0x8A, 0x8B), DeltaRule::kAtMostOne)
          .has(no_lives())
          .ends(ram(0x87) == 0 && ram(0x86) == 0)
          .plays(press(0x80, 2), range(0, 2, 2))
          .offers(kBothSwitches),
      game(G::jamesbond)
          .scores(bcd(1, 0xDC, 0xDD, 0xDE))
          .has(lives_at(0x86, 0x0F).plus(1))
          .ends(ram(0x86, 0x0F) == 0 && ram(0x8C) == 0x68)
          .plays(press(0x8C, 20).or_plus(0x48), range(0, 2)),
      game(G::journey_escape)
          .scores(bcd(1, 0x92, 0x91, 0x90), DeltaRule::kIgnores, 50000)
          .has(no_lives())
          .ends(ram(0x95) == 0 && ram(0x96) == 0)
          .acts(kAllActions & ~set_of(kFire, kUpFire))
          .begins(run(kFire))
          .offers(kLeftSwitch),
      game(G::kaboom)
          .scores(bcd(1, 0xA5, 0xA4, 0xA3))
          .ends(ram(0xA1) == 0 || score == 999999)
          .acts(kStill | kSides)
          .begins(run(kFire)),
      game(G::kangaroo)
          .scores(bcd(100, 0xA8, 0xA7))
          .has(lives_at(0xAD, 0x07).plus(1))
          .ends(ram(0xAD) == 0xFF)
          .plays(press(0xBA, 2).or_plus(0x80), range(0, 2)),
      game(G::keystone_kapers)
          .scores(bcd(1, 0x9C, 0x9B))
          .has(lives_at(0x96))
          .ends(lives == 0 && ram(0x88) == 0)
          .acts(kStill | kCross | kDiagonals | kCrossFire)
          .begins(run(kReset)),
      game(G::king_kong)
          .scores(bcd(1, 0x83, 0x82))
          .has(lives_at(0xEE))
          .ends(lives == 0)
          .acts(kStill | kCross)
          .plays(press(0xEC, 2).at(2, 0), range(0, 4)),
      coded(G::klax).plays(press(0xF0EA, 2), range(0, 3)).begins(run(kFire), run(kNoop)),
      game(G::koolaid)
          .scores(bcd(100, 0x81, 0x80))
          .has(no_lives())
          .ends(ram(0xD1) == 0x80)
          .acts(kWithoutFire),
      game(G::krull)
          .scores(bcd(1, 0x9E, 0x9D, 0x9C))
          .has(lives_at(0x9F, 0x07).plus(1))
          .ends(ram(0x9F) == 0 && ram(0xA2) == 0x03 && ram(0x80) == 0x80),
      game(G::kung_fu_master)
          .scores(bcd(1, 0x9A, 0x99, 0x98))
          .has(lives_at(0x9D, 0x07).plus(1))
          .ends(ram(0x9D) == 0xFF)
          .acts(kAllActions & ~set_of(kFire, kUpRight, kUpLeft, kUpFire)),
      game(G::laser_gates)
          .scores(bcd(1, 0x82, 0x81, 0x80))
          .has(no_lives())
          .ends(ram(0x83) == 0)
          .begins(run(kReset)),
      game(G::lost_luggage)
          .scores(bcd(1, 0x96, 0x95, 0x94))
          .has(lives_at(0xCA))
          .ends(lives == 0 && ram(0xC8) == 0x0A && ram(0xA5) == 0 && ram(0xA9) == 0)
          .acts(kWithoutFire, kWithoutFire)
          .plays(press(0x94, 2).at(3, 1), range(0, 2))
          .begins(run(kFire))
          .offers(kLeftSwitch),
      game(G::mario_bros)
          .scores(bcd(100, 0x8A, 0x89))
          .has(lives_at(0x87))
          .ends(lives == 0)
          .plays(press(0x80, 5), range(0, 4, 2))
          .begins(run(kNoop, 10), run(kFire, 7)),
      coded(G::miniature_golf).offers(kLeftSwitch),
      game(G::montezuma_revenge)
          .scores(bcd(1, 0x95, 0x94, 0x93))
          .has(lives_at(0xBA, 0x07).plus(1))
          .ends(ram(0xBA) == 0 && ram(0xFE) == 0x60),
      game(G::mr_do)
          .scores(bcd(10, 0x82, 0x83))
          .has(lives_at(0xDB))
          .ends(ram(0xDA) == 0x40)
          .acts(kStill | kCross | kCrossFire)
          .plays(press(0x80, 5), range(0, 4))
          .begins(run(kFire)),
      game(G::ms_pacman)
          .scores(bcd(1, 0xF8, 0xF9, 0xFA))
          .has(lives_at(0xFB, 0x07).plus(1))
          .ends(ram(0xFB, 0x0F) == 0 && ram(0xA7) == 0x53)
          .acts(kWithoutFire)
          .plays(select_by(SelectRule::kMsPacman), range(0, 4)),
      game(G::name_this_game)
          .scores(bcd(1, 0xC6, 0xC5, 0xC4))
          .has(lives_at(0xC7, 0x07))
          .ends(lives == 0)
          .acts(kStill | kSides | kSidesFire)
          .plays(press(0xDE, 2), range(8, 3, 16))
          .offers(kLeftSwitch),
      coded(G::othello)
          .acts(kStill | kCross | kDiagonals)
          .plays(press(0xDE, 2).at(1, 1), range(0, 3))
          .offers(kRightSwitch),
      game(G::pacman)
          .scores(bcd(1, 0xCC, 0xCE, 0xD0))
          .has(lives_at(0x98).plus(1))
          .ends(lives == 1 && ram(0xE4) == 0x3F)
          .acts(set_of(kNoop) | kCross)
          .plays(press(0xCC, 2).at(1, 1).also(0xE6, 0), range(0, 8))
          .offers(kLeftSwitch),
      game(G::phoenix)
          .scores(bcd(100, 0xC8, 0xC9).plus(0xC7, D::kHighNibble, 10))
          .has(lives_at(0xCB, 0x07))
          .ends(ram(0xCC) == 0x80)
          .acts(kStill | kSides | set_of(kDown, kDownFire) | kSidesFire),
      game(G::pitfall)
          .scores(bcd(1, 0xD7, 0xD6, 0xD5).starting_at(2000))
          .has(lives_rule(LivesRule::kTally, 0x80, 0xF0, 4))
          .ends(ram(0x80, 0xF0) == 0 && ram(0x9E) != 0)
          .begins(run(kUp)),
      game(G::pitfall2)
          .scores(bcd(1, 0xC9, 0xC8, 0xC7).starting_at(4000))
          .ends(score == 199000)
          .begins(run(kUp)),
      game(G::pong)
          .scores(difference(D::kRaw, 0x8E, 0x8D))
          .has(no_lives())
          .ends(ram(0x8E) == 21 || ram(0x8D) == 21)
          .acts(kStill | kSides | kSidesFire)
          .plays(press(0x96, 2), range(0, 2))
          .offers(kBothSwitches),
      game(G::pooyan)
          .scores(bcd(1, 0x8A, 0x89, 0x88))
          .has(lives_at(0x96, 0x07).plus(1))
          .ends(ram(0x96) == 0 && ram(0x98) == 0x05)
          .acts(kStill | set_of(kUp, kDown, kUpFire, kDownFire))
          .plays(press(0xBD, 2).opened_by(2), range(10, 4, 20)),
      game(G::private_eye)
          .scores(bcd(1, 0xCA, 0xC9, 0xC8).starting_at(1000))
          .has(no_lives())
          .ends(ram(0xC2) > 0x01)
          .plays(press(0x80, 2), range(0, 5))
          .begins(run(kUp))
          .offers(kBothSwitches),
      game(G::qbert)
          .scores(bcd(1, 0xDB, 0xDA, 0xD9))
          .has(lives_rule(LivesRule::kCountsDown, 0x88).from(4))
          .watches(0x88, 0x02)
          .ends(ram(0x88) == 0xFE || (ram(0x88) == 0x02 && previous == 0xFF), EndRule::kKeepsScore)
          .acts(kStill | kCross)
          .offers(kLeftSwitch),
      game(G::riverraid)
          .scores(digits(D::kEighthOrBlank, 1, 0xD7, 0xD5, 0xD3, 0xD1, 0xCF, 0xCD))
          .has(lives_rule(LivesRule::kFuel, 0xC0))
          .watches(0xC0, 0x58)
          .ends(ram(0xC0) == 0x58 && previous == 0x59)
          .offers(kLeftSwitch),
      game(G::road_runner)
          .scores(digits(D::kLowDigit, 100, 0xC9, 0xCA, 0xCB, 0xCC))
          .has(lives_at(0xC4, 0x07).plus(1))
          .ends((ram(0xC4, 0x07) == 0 && ram(0xB9) != 0) ||
                (ram(0xC4, 0x07) == 0 && ram(0xBD) != 0)),
      game(G::robotank)
          .scores(one(0xB6, D::kRaw, 12).plus(0xB5, D::kRaw, 1))
          .has(lives_at(0xA8, 0x0F).plus(1))
          .ends(ram(0xA8) == 0 && ram(0xB4) == 0xFF),
      game(G::seaquest)
          .scores(bcd(1, 0xBA, 0xB9, 0xB8))
          .has(lives_at(0xBB).plus(1))
          .ends(ram(0xA3) != 0)
          .offers(kLeftSwitch),
      game(G::sir_lancelot)
          .scores(bcd(1, 0xA0, 0x9F, 0x9E))
          .has(lives_at(0xA9))
          .ends(lives == 0 && ram(0xA7) == 0xA0)
          .acts(kStill | kSides | kSidesFire)
          .begins(run(kReset), run(kLeft)),
      game(G::skiing)
          .scores(bcd(-1, 0xEA, 0xE9).plus(0xE8, D::kRaw, -6000))
          .has(no_lives())
          .ends(ram(0x91) == 0xFF)
          .acts(set_of(kNoop) | kSides, kWithoutFire)
          .begins(run(kDown, 16)),
      game(G::solaris)
          .scores(bcd(10, 0xDC, 0xDD, 0xDE))
          .has(lives_at(0xD9, 0x0F))
          .ends(ram(0xD9) == 0),
      game(G::space_invaders)
          .scores(bcd(1, 0xE8, 0xE6), DeltaRule::kWraps, 10000)
          .has(lives_at(0xC9))
          .ends(ram(0x98, 0x80) != 0 || lives == 0)
          .acts(kStill | kSides | kSidesFire)
          .plays(press(0xDC, 2), range(0, 16))
          .offers(kLeftSwitch),
      game(G::space_war)
          .scores(bcd(1, 0xA7))
          .ends(score == 10 || ram(0x80) == 0)
          .plays(press(0xA7, 2).in(D::kBcd), range(6, 12)),
      game(G::star_gunner)
          .scores(digits(D::kLowDigit, 100, 0x83, 0x84, 0x85, 0x86))
          .has(lives_at(0x87, 0x0F).gated(LivesRule::kReadElse, latched == 1, 5))
          .latches(ram(0x87) == 5)
          .ends(ram(0x87) == 0)
          .plays(press(0xF4, 15), range(0, 4)),
      coded(G::superman).offers(kBothSwitches),
      game(G::surround)
          .scores(difference(D::kBcd, 0xF7, 0xF6))
          .ends(ram(0xF6, D::kBcd) == 10 || ram(0xF7, D::kBcd) == 10)
          .acts(set_of(kNoop) | kCross)
          .plays(press(0xF9, 2).at(1, 1), range(0, 2, 2))
          .offers(kBothSwitches),
      coded(G::tennis).has(no_lives()).plays(press(0x80, 2), range(0, 2, 2)).offers(kBothSwitches),
      game(G::tetris)
          .scores(bcd(1, 0xF1, 0xF2), DeltaRule::kNotNegative)
          .has(no_lives())
          .ends(ram(0xF3, 0x80) != 0, EndRule::kClearsScore)
          .acts(kStill | kSides | set_of(kDown)),
      coded(G::tic_tac_toe_3d)
          .acts(kStill | kCross | kDiagonals)
          .plays(press(0x88, 2), range(0, 9))
          .offers(kRightSwitch),
      game(G::time_pilot)
          .scores(bcd(100, 0x8D, 0x8F))
          .has(lives_at(0x8B, 0x07)
                   .plus(1)
                   .from(5)
                   .gated(LivesRule::kReadWhile, ram(0x80, 0x0F) == 2))
          .ends(ram(0xA0) != 0)
          .acts(kStill | kCross | kCrossFire)
          .offers(0b0111),
      game(G::trondead)
          .scores(bcd(1, 0xBF, 0xBE, 0xBD))
          .has(lives_rule(LivesRule::kRead).minus(0xC8, 0xFF).plus(5))
          .ends(ram(0xC8) == 5)
          .offers(kLeftSwitch),
      game(G::turmoil)
          .scores(bcd(10, 0x89, 0x8A).plus(0xD3, D::kRaw, 10))
          .has(lives_at(0xB9))
          .ends(lives == 0 && ram(0xC5) == 0x01)
          .acts(kStill | kCross | kDiagonals | kSidesFire)
          .plays(press(0xEA, 2), range(0, 9))
          .begins(run(kFire)),
      game(G::tutankham)
          .scores(bcd(1, 0x9C, 0x9A))
          .has(lives_at(0x9E, 0x03))
          .ends(ram(0x9E) == 0 && ram(0x81) != 0x84)
          .acts(set_of(kNoop, kUpFire) | kCross | kSidesFire)
          .plays(press(0xAB, 2), range(0, 4, 4)),
      game(G::up_n_down)
          .scores(bcd(1, 0x82, 0x81, 0x80))
          .has(lives_at(0x86, 0x0F).plus(1))
          .ends(ram(0x94) > 0x40 && ram(0x86, 0x0F) == 0)
          .acts(kStill | set_of(kUp, kDown, kUpFire, kDownFire))
          .begins(run(kFire))
          .offers(kBothSwitches),
      game(G::venture)
          .scores(bcd(100, 0xC8, 0xC7))
          .has(lives_at(0xC6, 0x07).plus(1))
          .ends(ram(0xC6) == 0 && ram(0xCD) == 0xFF && ram(0xBF, 0x80) != 0)
          .offers(kBothSwitches),
      coded(G::video_checkers)
          .acts(set_of(kFire) | kDiagonals)
          .plays(press(0xF6, 1).at(1, 0, 6), range(1, 9), range(11, 9)),
      coded(G::video_chess).acts(kStill | kCross | kDiagonals).plays(press(0xEA, 1), range(0, 5)),
      coded(G::video_cube)
          .plays(select_by(SelectRule::kVideoCube), range(0, 51, 100), range(0, 3))
          .plays_product()
          .begins(run(kNoop, 61), run(kFire), run(kNoop, 2))
          .offers(kLeftSwitch),
      game(G::video_pinball)
          .scores(bcd(1, 0xB0, 0xB2, 0xB4))
          .has(lives_at(0xA8, 0x01).minus(0x99, 0x07).plus(4))
          .ends(ram(0xAF, 0x01) != 0)
          .acts(kStill | kCross | set_of(kUpFire) | kSidesFire)
          .plays(press(0xC1, 2), range(0, 2, 2))
          .offers(kLeftSwitch),
      game(G::wizard_of_wor)
          .scores(bcd(100, 0x86, 0x88).folded_at(800000))
          .has(lives_at(0x8D, 0x0F).from(3).gated(LivesRule::kReadWhile, ram(0xD7, 0x01) == 0))
          .ends(ram(0x8D, 0x0F) == 0 && ram(0xF4) == 0xF8)
          .acts(kStill | kCross | kCrossFire)
          .offers(kLeftSwitch),
      coded(G::word_zapper)
          .plays(press(0xDB, 2), range(0, 24))
          .begins(run(kNoop, 486), run(kFire), run(kNoop, 2))
          .offers(kBothSwitches),
      game(G::yars_revenge)
          .scores(bcd(1, 0xE2, 0xE1, 0xE0))
          .has(lives_at(0x9E, 0xF0, 4))
          .ends(lives == 0)
          .plays(press(0xE3, 1).opened_by(2), range(0, 4, 32))
          .begins(run(kFire))
          .offers(kLeftSwitch),
      game(G::zaxxon)
          .scores(bcd(100, 0xE9, 0xE8))
          .has(lives_at(0xEA, 0x07))
          .ends(lives == 0)
          .plays(press(0x82, 10), range(0, 4, 8)),
  };
  static_assert(in_order(kRows), "each row stands at its game's number");
  return kRows[static_cast<u32>(id)];
}

}  // namespace scanline::games
