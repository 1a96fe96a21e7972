// standby.cpp -- one place for an offer in the process, and a count of those who look.
#include "standby.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "patience.h"

namespace scanline {
namespace {

std::atomic<JobOffer*> offered{nullptr};
std::atomic<i32> num_looking{0};
std::atomic<i32> num_inside{0};  // threads that may hold a pointer to an offer

// Threads do not live on in a forked process.
void forget_threads() {
  offered.store(nullptr);
  num_looking.store(0);
  num_inside.store(0);
}

struct Inside {
  Inside() { num_inside.fetch_add(1); }
  ~Inside() { num_inside.fetch_sub(1); }
};

// Calls `answer` with the offer, if there is one.
template <class Answer>
bool take_offer(const Answer& answer) {
  if (offered.load() == nullptr) return false;
  const Inside inside;
  JobOffer* const offer = offered.exchange(nullptr);
  if (offer != nullptr) answer(*offer);
  return offer != nullptr;
}

}  // namespace

i32 offer_jobs(JobOffer& offer, i32 num_wanted) {
  const i32 num = std::min(num_wanted, num_looking.load());
  JobOffer* place = nullptr;
  if (num < 1 || !offered.compare_exchange_strong(place, &offer)) return 0;
  if (num_looking.load() > 0) return num;  // who stops looking asks for offers once more
  place = &offer;
  return offered.compare_exchange_strong(place, nullptr) ? 0 : num;
}

bool withdraw_jobs(JobOffer& offer, Patience patience) {
  JobOffer* place = &offer;
  offered.compare_exchange_strong(place, nullptr);
  // A thread inside leaves after its job.
  return wait_for_thread([] { return num_inside.load() == 0; }, patience);
}

Lookout::Lookout() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, forget_threads); });
  num_looking.fetch_add(1);
}

Lookout::~Lookout() {
  num_looking.fetch_sub(1);
  take_offer([](JobOffer& offer) { offer.decline(); });
}

bool Lookout::lends(const JobOffer::Stays& stays) {
  return take_offer([&](JobOffer& offer) { offer.lend(stays); });
}

}  // namespace scanline
