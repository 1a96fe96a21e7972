// rom_table.h -- the cartridges that are known by their md5: type and console properties.
//
// The 108 dumps that ale-py 0.12.1 carries. Properties are those of ALE's database where they
// differ from the defaults and matter to the emulation; the television format is left to the
// detection except where the database names it.
#pragma once

#include "rom.h"

namespace scanline {

struct RomRow {
  u64 md5_high, md5_low;
  CartridgeType type;
  i32 y_start, height;
  u32 flags;
  i32 paddle_max;
};

enum RomFlag : u32 {
  kLeftPaddles = 1,
  kRightPaddles = 2,
  kSwapPaddles = 4,
  kSwapPorts = 8,
  kNoBlanks = 16,
  kDifficultyA = 32,  // both switches
  kPal = 64,
};

inline Properties properties_of(const RomRow& row) {
  Properties p;
  p.y_start = row.y_start;
  p.height = row.height;
  p.pal = row.flags & kPal;
  p.detect_format = !p.pal;
  p.hmove_blanks = !(row.flags & kNoBlanks);
  p.swap_ports = row.flags & kSwapPorts;
  p.swap_paddles = row.flags & kSwapPaddles;
  p.left_paddles = row.flags & kLeftPaddles;
  p.right_paddles = row.flags & kRightPaddles;
  p.left_difficulty_a = p.right_difficulty_a = row.flags & kDifficultyA;
  p.paddle_max = row.paddle_max;
  return p;
}

// Null if the md5 is not in the table.
inline const RomRow* find_rom(u64 md5_high, u64 md5_low) {
  // clang-format off
  static constexpr RomRow kRows[] = {
      {0x4b27f5397c442d25u, 0xf0c418ccdacf1926u, CartridgeType::k4K, 34, 210, 0, 790196},  // adventure
      {0x35be55426c1fec32u, 0xdfb503b4f0651572u, CartridgeType::k4K, 34, 210, 0, 790196},  // air_raid
      {0xf1a0a23e6464d954u, 0xe3a9579c4ccd01c8u, CartridgeType::k4K, 34, 210, 0, 790196},  // alien
      {0xacb7750b4d0c4bd3u, 0x4969802a7deb2990u, CartridgeType::k4K, 34, 210, kDifficultyA, 790196},  // amidar
      {0xde78b3a064d37439u, 0x0ac0710f95edde92u, CartridgeType::k4K, 34, 210, 0, 790196},  // assault
      {0x89a68746eff7f266u, 0xbbf08de2483abe55u, CartridgeType::kF8, 34, 210, 0, 790196},  // asterix
      {0xccbd36746ed45258u, 0x21a8083b0d6d2c2cu, CartridgeType::kF8, 34, 210, kNoBlanks, 790196},  // asteroids
      {0x9ad36e699ef6f45du, 0x9eb6c4cf90475c9fu, CartridgeType::k4K, 34, 210, 0, 790196},  // atlantis
      {0x826481f6fc53ea47u, 0xc9f272f7050eedf7u, CartridgeType::k4K, 34, 210, 0, 790196},  // atlantis2
      {0x8556b42aa05f94bcu, 0x29ff39c39b11bff4u, CartridgeType::k4K, 34, 210, kLeftPaddles, 1000000},  // backgammon
      {0x00ce0bdd43aed84au, 0x983bef38fe7f5ee3u, CartridgeType::k4K, 34, 210, 0, 790196},  // bank_heist
      {0x819aeeb9a2e11debu, 0x54e6de334f843894u, CartridgeType::k2K, 34, 210, 0, 790196},  // basic_math
      {0x41f252a66c6301f1u, 0xe8ab3612c19bc5d4u, CartridgeType::kF8, 34, 210, kNoBlanks, 790196},  // battle_zone
      {0x79ab4123a83dc11du, 0x468fb2108ea09e2eu, CartridgeType::kF8, 34, 210, 0, 790196},  // beam_rider
      {0x136f75c4dd02c292u, 0x83752b7e5799f978u, CartridgeType::k4K, 34, 210, 0, 790196},  // berzerk
      {0x0a981c03204ac2b2u, 0x78ba392674682560u, CartridgeType::k2K, 34, 210, kLeftPaddles, 795000},  // blackjack
      {0xc9b7afad3bfd922eu, 0x006a6bfc1d4f3fe7u, CartridgeType::k2K, 34, 210, 0, 790196},  // bowling
      {0xc3ef5c4653212088u, 0xeda54dc91d787870u, CartridgeType::k2K, 34, 210, 0, 790196},  // boxing
      {0xf34f08e5eb96e500u, 0xe851a80be3277a56u, CartridgeType::k2K, 34, 210, kLeftPaddles, 790196},  // breakout
      {0x028024fb8e5e5f18u, 0xea586652f9799c96u, CartridgeType::k4K, 26, 214, 0, 790196},  // carnival
      {0xb816296311019ab6u, 0x9a21cb9e9e235d12u, CartridgeType::k4K, 34, 210, kLeftPaddles, 790196},  // casino
      {0x91c2098e88a6b13fu, 0x977af8c003e0bca5u, CartridgeType::kF8, 34, 210, 0, 790196},  // centipede
      {0xc1cb228470a87bebu, 0x5f36e90ac745da26u, CartridgeType::k4K, 34, 210, 0, 790196},  // chopper_command
      {0x0ef64cdbecccb704u, 0x9752a3de0b7ade14u, CartridgeType::k2K, 39, 256, 0, 790196},  // combat
      {0x55ef7b6506642836u, 0x7844342ed59f956cu, CartridgeType::kF8, 34, 210, 0, 790196},  // crazy_climber
      {0x8cd26dcf249456feu, 0x4aeb8db42d49df74u, CartridgeType::kF6, 34, 210, 0, 790196},  // crossbow
      {0x106855474c69d08cu, 0x8ffa308d47337269u, CartridgeType::kF6SC, 34, 210, kNoBlanks, 790196},  // darkchambers
      {0x0f643c34e40e3f1du, 0xaafd9c524d3ffe64u, CartridgeType::k4K, 34, 210, 0, 790196},  // defender
      {0xf0e0addc07971561u, 0xab80d9abe1b8d333u, CartridgeType::k4K, 34, 210, 0, 790196},  // demon_attack
      {0x36b20c427975760cu, 0xb9cf4a47e41369e4u, CartridgeType::k4K, 34, 210, 0, 790196},  // donkey_kong
      {0x368d88a6c071cabau, 0x60b4f778615aae94u, CartridgeType::kF6, 34, 210, 0, 790196},  // double_dunk
      {0x5aea9974b975a6a8u, 0x44e6df10d2b861c4u, CartridgeType::kF8, 34, 210, 0, 790196},  // earthworld
      {0x71f8bacfbdca0191u, 0x13f3f0801849057eu, CartridgeType::kF8SC, 34, 210, 0, 790196},  // elevator_action
      {0x94b92a882f6dbaa6u, 0x993a46e2dcc58402u, CartridgeType::k4K, 34, 210, 0, 790196},  // enduro
      {0x6b683be69f92958au, 0xbe0e2a9945157ad5u, CartridgeType::k4K, 34, 210, 0, 790196},  // entombed
      {0x615a3bf251a38eb6u, 0x638cdc7ffbde5480u, CartridgeType::kF8, 34, 210, 0, 790196},  // et
      {0xb8865f05676e64f3u, 0xbec72b9defdacfa7u, CartridgeType::k2K, 34, 210, 0, 790196},  // fishing_derby
      {0x30512e0e83903fc0u, 0x5541d2f6a6a62654u, CartridgeType::k2K, 34, 210, 0, 790196},  // flag_capture
      {0x8e0ab801b1705a74u, 0x0b476b7f588c6d16u, CartridgeType::k2K, 34, 210, 0, 790196},  // freeway
      {0x081e2c114c9c20b6u, 0x1acf25fc95c71bf4u, CartridgeType::k4K, 34, 210, 0, 790196},  // frogger
      {0x4ca73eb959299471u, 0x788f0b685c3ba0b5u, CartridgeType::k4K, 34, 210, 0, 790196},  // frostbite
      {0x211774f4c5739042u, 0x618be8ff67351177u, CartridgeType::kF8, 34, 210, 0, 790196},  // galaxian
      {0xc16c79aad6272bafu, 0xfb8aae9a7fff0864u, CartridgeType::k4K, 34, 210, 0, 790196},  // gopher
      {0x8ac18076d01a6b63u, 0xacf6e2cab4968940u, CartridgeType::kF8, 34, 210, 0, 790196},  // gravitar
      {0xf16c709df0a6c52fu, 0x47ff52b9d95b7d8du, CartridgeType::k4K, 34, 210, 0, 790196},  // hangman
      {0xf0a6e99f58758912u, 0x46c3dbecbf2d2ceau, CartridgeType::k4K, 34, 210, 0, 790196},  // haunted_house
      {0xfca4a5be12519270u, 0x27f2c24774a02160u, CartridgeType::kF8, 34, 210, 0, 790196},  // hero
      {0x7972e5101fa548b9u, 0x52d852db24ad6060u, CartridgeType::k2K, 34, 210, 0, 790196},  // human_cannonball
      {0xa4c08c4994eb9d24u, 0xfb78be1793e82e26u, CartridgeType::k4K, 34, 210, 0, 790196},  // ice_hockey
      {0xe51030251e440cffu, 0xaab1ac63438b44aeu, CartridgeType::kE0, 34, 210, 0, 790196},  // jamesbond
      {0x718ae62c70af4e5fu, 0xd8e932fee216948au, CartridgeType::k4K, 34, 230, 0, 790196},  // journey_escape
      {0x3276c777cbe97cddu, 0x2b4a63ffc16b7151u, CartridgeType::kF8, 34, 210, 0, 790196},  // joust
      {0x5428cdfada281c56u, 0x9c74c7308c7f2c26u, CartridgeType::k2K, 34, 210, kLeftPaddles, 790196},  // kaboom
      {0x4326edb70ff20d0eu, 0xe5ba58fa5cb09d60u, CartridgeType::kF8, 34, 210, 0, 790196},  // kangaroo
      {0x6c1f3f2e359dbf55u, 0xdf462ccbcdd2f6bfu, CartridgeType::k4K, 34, 210, 0, 790196},  // keystone_kapers
      {0x0dd4c69b5f9a7ae9u, 0x6a7a08329496779au, CartridgeType::k4K, 34, 210, 0, 790196},  // king_kong
      {0xeed9eaf1a0b6a2b9u, 0xbc4c8032cb43e3fbu, CartridgeType::kF6SC, 34, 210, 0, 790196},  // klax
      {0x534e23210dd1993cu, 0x828d944c6ac4d9fbu, CartridgeType::k4K, 34, 210, 0, 790196},  // koolaid
      {0x4baada22435320d1u, 0x85c95b7dd2bcdb24u, CartridgeType::kF8, 34, 210, 0, 790196},  // krull
      {0x5b92a93b23523ff1u, 0x6e2789b820e2a4c5u, CartridgeType::kF8, 34, 210, 0, 790196},  // kung_fu_master
      {0x8e4cd60d93fcde80u, 0x65c1a2b972a26377u, CartridgeType::k4K, 34, 210, 0, 790196},  // laser_gates
      {0x2d76c5d1aad50644u, 0x2b9e9fb67765e051u, CartridgeType::k4K, 34, 210, 0, 790196},  // lost_luggage
      {0xe908611d99890733u, 0xbe31733a979c62d8u, CartridgeType::kF8, 34, 210, 0, 790196},  // mario_bros
      {0xed2218b3075d15eau, 0xa34e3356025ccca3u, CartridgeType::k4K, 34, 250, kPal, 790196},  // maze_craze
      {0xdf62a658496ac98au, 0x3aa4a6ee5719c251u, CartridgeType::k2K, 34, 210, 0, 790196},  // miniature_golf
      {0x3347a6dd59049b15u, 0xa38394aa2dafa585u, CartridgeType::kE0, 34, 210, 0, 790196},  // montezuma_revenge
      {0xaa7bb54d2c189a31u, 0xbb1fa20099e42859u, CartridgeType::kF8, 34, 210, 0, 790196},  // mr_do
      {0x87e79cd41ce136fdu, 0x4f72cc6e2c161beeu, CartridgeType::kF8, 34, 210, kNoBlanks, 790196},  // ms_pacman
      {0x36306070f0c90a72u, 0x461551a7a4f3a209u, CartridgeType::k4K, 34, 210, 0, 790196},  // name_this_game
      {0x113cd09c9771ac27u, 0x8544b7e90efe7df2u, CartridgeType::k2K, 34, 210, 0, 790196},  // othello
      {0xfc2233fc116faef0u, 0xd3c31541717ca2dbu, CartridgeType::k4K, 34, 210, 0, 790196},  // pacman
      {0x7e52a95074a66640u, 0xfcfde124fffd491au, CartridgeType::kF8, 34, 210, 0, 790196},  // phoenix
      {0x3e90cf23106f2e08u, 0xb2781e41299de556u, CartridgeType::k4K, 34, 210, 0, 790196},  // pitfall
      {0x6d842c96d5a01967u, 0xbe9680080dd5be54u, CartridgeType::kDPC, 34, 210, 0, 790196},  // pitfall2
      {0x60e0ea3cbe0913d3u, 0x9803477945e9e5ecu, CartridgeType::k2K, 34, 210, kLeftPaddles | kRightPaddles | kSwapPaddles, 790196},  // pong
      {0x4799a40b6e889370u, 0xb7ee55c17ba65141u, CartridgeType::k4K, 26, 220, 0, 790196},  // pooyan
      {0xef3a4f64b6494ba7u, 0x70862768caf04b86u, CartridgeType::kF8, 34, 210, 0, 790196},  // private_eye
      {0x484b0076816a1048u, 0x75e00467d431c2d2u, CartridgeType::k4K, 40, 210, 0, 790196},  // qbert
      {0x393948436d1f4cc3u, 0x192410bb918f9724u, CartridgeType::k4K, 34, 210, 0, 790196},  // riverraid
      {0xce5cc62608be2cd3u, 0xed8abd844efb8919u, CartridgeType::kF6, 34, 210, 0, 790196},  // road_runner
      {0x4f618c2429138e02u, 0x80969193ed6c107eu, CartridgeType::kFE, 34, 210, 0, 790196},  // robotank
      {0x240bfbac5163af4du, 0xf5ae713985386f92u, CartridgeType::k4K, 34, 210, 0, 790196},  // seaquest
      {0xdd0cbe5351551a53u, 0x8414fb9e37fc56e8u, CartridgeType::kF8, 34, 210, 0, 790196},  // sir_lancelot
      {0xb76fbadc8ffb1f83u, 0xe2ca08b6fb4d6c9fu, CartridgeType::k2K, 34, 210, 0, 790196},  // skiing
      {0xe72eb8d4410152bdu, 0xcb69e7fba327b420u, CartridgeType::kF6, 34, 210, 0, 790196},  // solaris
      {0x72ffbef6504b75e6u, 0x9ee1045af9075f66u, CartridgeType::k4K, 34, 210, 0, 790196},  // space_invaders
      {0xb702641d698c60bcu, 0xdc922dbd8c9dd49cu, CartridgeType::k2K, 34, 210, 0, 790196},  // space_war
      {0xa3c1c70024d7aabbu, 0x41381adbfb6d3b25u, CartridgeType::k4K, 34, 210, 0, 790196},  // star_gunner
      {0xa9531c7630774643u, 0x07086ec9a1fd057du, CartridgeType::k4K, 34, 210, 0, 790196},  // superman
      {0x4d7517ae69f95cfbu, 0xc053be01312b7dbau, CartridgeType::k2K, 34, 210, kSwapPorts, 790196},  // surround
      {0x42cdd6a9e42a3639u, 0xe190722b8ea3fc51u, CartridgeType::k2K, 34, 210, 0, 790196},  // tennis
      {0xb0e1ee07fbc73493u, 0xeac5651a52f90f00u, CartridgeType::k2K, 34, 210, 0, 790196},  // tetris
      {0x0db4f4150fecf77eu, 0x4ce72ca4d04c052fu, CartridgeType::k2K, 34, 210, 0, 790196},  // tic_tac_toe_3d
      {0xfc2104dd2dadf9a6u, 0x176c1c1c8f87ced9u, CartridgeType::kF8, 34, 210, 0, 790196},  // time_pilot
      {0xfb27afe896e7c928u, 0x089307b32e5642eeu, CartridgeType::k4K, 34, 210, 0, 790196},  // trondead
      {0x7a5463545dfb2dcfu, 0xdafa6074b2f2c15eu, CartridgeType::k4K, 34, 210, 0, 790196},  // turmoil
      {0x085322bae40d904fu, 0x53bdcc56df0593fcu, CartridgeType::kE0, 34, 210, 0, 790196},  // tutankham
      {0xa499d720e7ee35c6u, 0x2424de882a3351b6u, CartridgeType::kF8, 30, 210, 0, 790196},  // up_n_down
      {0x3e899eba0ca8cd29u, 0x72da1ae5479b4f0du, CartridgeType::k4K, 34, 210, 0, 790196},  // venture
      {0x539d26b6e9df0da8u, 0xe7465f0f5ad863b7u, CartridgeType::k4K, 34, 210, 0, 790196},  // video_checkers
      {0xf0b7db930ca0e548u, 0xc41a97160b9f6275u, CartridgeType::k4K, 34, 210, 0, 790196},  // video_chess
      {0x3f540a30fdee0b20u, 0xaed7288e4a5ea528u, CartridgeType::k4K, 34, 210, 0, 790196},  // video_cube
      {0x107cc025334211e6u, 0xd29da0b6be46aec7u, CartridgeType::k4K, 34, 210, 0, 790196},  // video_pinball
      {0xcbe5a166550a8129u, 0xa5e6d374901dffadu, CartridgeType::k4K, 34, 210, kLeftPaddles | kRightPaddles, 790196},  // warlords
      {0x7e8aa18bc9502eb5u, 0x7daaf5e7c1e94da7u, CartridgeType::k4K, 34, 210, kSwapPorts, 790196},  // wizard_of_wor
      {0xec3beb6d8b5689e8u, 0x67bafb5d5f507491u, CartridgeType::k4K, 34, 210, 0, 790196},  // word_zapper
      {0xc5930d0e8cdae3e0u, 0x37349bfa08e871beu, CartridgeType::k4K, 34, 210, 0, 790196},  // yars_revenge
      {0xeea0da9b987d6612u, 0x64cce69a7c13c3bdu, CartridgeType::kF8, 34, 210, 0, 790196},  // zaxxon
  };
  // clang-format on
  for (const RomRow& row : kRows) {
    if (row.md5_high == md5_high && row.md5_low == md5_low) return &row;
  }
  return nullptr;
}

}  // namespace scanline
