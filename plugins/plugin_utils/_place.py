# Copyright (c) 2026, heterogpu contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Place replicas by the lexicographic objective. PRIVATE: internal to the collection, may change at any time.

The objective, most important first: pinned replicas placed; replicas placed, class by class; moves of running replicas
(never more than plan_max_moves); GPUs whose geometry changes; GPUs with MIG; spread over nodes, NUMA nodes and GPUs.

Replicas that are hard to place (many GPUs, few nodes) are placed first, each on its best device. When everything is
placed, the first two aims are met whatever the order was. When not, classes are admitted one after the other, room is made
by re-placing what this run has placed, and small clusters are searched exhaustively.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace

from ._candidates import Candidates, Option
from ._choose import Chooser
from ._consolidate import Consolidation
from ._entities import Service
from ._exact import fewest_moves, improve
from ._rearrange import Rearrangement
from ._repair import LARGE, Move, Repair
from ._state import Assignment, Cluster, ReplicaId

Wanted = list[ReplicaId]
Snapshot = dict[ReplicaId, Assignment]

MOST_SUGGESTED = 12  # moves of a suggestion: more than a person would want to read
MOST_MOVES = 4  # for one more replica; beyond that, a person plans anew


class Placer:
    """Places the replicas of one run on a cluster that already holds what is kept."""

    def __init__(self, cluster: Cluster, candidates: Mapping[str, Candidates], in_force: Iterable[ReplicaId]):
        self.cluster = cluster
        self._options = {name: found.options for name, found in candidates.items()}
        self.chooser = Chooser(cluster, self._options)
        self.repair = Repair(self.chooser, frozenset(in_force))
        self._consolidation = Consolidation(self.chooser, self.repair.in_force)
        self.rearrangement = Rearrangement(cluster, self._options)
        self._large = sum(len(state.gpus) for state in cluster.nodes.values()) > LARGE

    def run(self, wanted: Sequence[ReplicaId]) -> Wanted:
        """Place as many as possible without moving what is in force; return those that found no place."""
        before = self._snapshot()
        unplaced = self._fill(wanted, hardest_first=True)
        unplaced = self._make_room(unplaced)
        if unplaced and not self._large:
            unplaced = self._rearranged(self._snapshot(), unplaced, 0)
        if unplaced and not self.rearrangement.sure:
            first, found = self._snapshot(), unplaced
            self._restore(before)
            self.chooser.packed = True
            unplaced = self._make_room(self._admit(wanted))
            self.chooser.packed = False
            unplaced = self._spread(wanted, unplaced, before)
            if not self._large and self._reached(first) > self._reached(self._snapshot()):
                self._restore(first)
                unplaced = found
        if unplaced and not self.rearrangement.sure:
            unplaced = improve(self.cluster, self._options, wanted, unplaced)
        new = [replica for replica in sorted(self.cluster.where) if replica not in self.repair.in_force]
        left: Wanted = []
        if self.rearrangement.sure:
            return sorted(unplaced)
        for replica in sorted(unplaced):
            if (left and left[-1][0] == replica[0]) or not self._exchange(replica, new, MOST_MOVES + 1):
                left.append(replica)
        return left

    def with_moves(self, unplaced: Wanted, allowance: int) -> tuple[Wanted, dict[str, list[Move]]]:
        """Place what fits only when running replicas move; beyond the allowance, only say what would have to move."""
        home = self._snapshot()
        spent = 0
        if unplaced and allowance and not self._large:
            unplaced = self._rearranged(home, unplaced, allowance)
            spent = len(self._moves(home))
        return self._one_by_one(unplaced, allowance - spent)

    def _rearranged(self, home: Snapshot, unplaced: Wanted, allowance: int) -> Wanted:
        """Search for the best placement of all that this run has placed, or could not; keep it when it is better than the one at hand."""
        score = self._score(home)
        new = {replica for replica in self.cluster.where if replica not in self.repair.in_force}
        for replica in sorted(new):
            self.cluster.remove(replica)
        groups: dict[tuple[bool, int], Wanted] = {}
        for replica in sorted(new.union(unplaced)):
            groups.setdefault(self._importance(replica), []).append(replica)
        if self.rearrangement.run([group for _importance, group in sorted(groups.items())], allowance):
            missing = sorted(replica for replica in new.union(unplaced) if replica not in self.cluster.where)
            missing = self._make_room(self._fill(missing, hardest_first=True))
            self._settle()
            if self._score(home) > score:
                return sorted(missing)
        self._restore(home)
        return unplaced

    def _settle(self) -> None:
        """Give what this run has placed the best devices beside what is in force now, if it all still finds room then."""
        found = self._snapshot()
        new = sorted(replica for replica in found if replica not in self.repair.in_force)
        for replica in new:
            self.cluster.remove(replica)
        if self._make_room(self._fill(new, hardest_first=True)):
            self._restore(found)

    def _score(self, home: Snapshot) -> tuple[int, ...]:
        """What has been reached, in the order of the objective: pinned replicas, replicas class by class, moves."""
        return (*self._reached(self.cluster.where), -len(self._moves(home)))

    def _reached(self, placed: Iterable[ReplicaId]) -> tuple[int, ...]:
        importances = [self._importance(replica) for replica in placed]
        counts = Counter(rank for _free, rank in importances)
        return (sum(not free for free, _rank in importances), *(counts[rank] for rank in range(3)))

    def _one_by_one(self, unplaced: Wanted, allowance: int) -> tuple[Wanted, dict[str, list[Move]]]:
        left: Wanted = []
        suggestions: dict[str, list[Move]] = {}
        home = self._snapshot()
        for name in sorted({replica[0] for replica in unplaced}, key=lambda name: (self._importance((name, 0)), name)):
            accepted = self._snapshot()
            for position, replica in enumerate(group := sorted(replica for replica in unplaced if replica[0] == name)):
                before = self._snapshot()
                if not self._move_for(replica, max(MOST_MOVES, allowance)):
                    left += group[position:]
                    break
                moves = self._moves(before)
                if len(moves) <= allowance and name not in suggestions:
                    allowance -= len(moves)
                    accepted = self._snapshot()
                else:
                    suggestions[name] = self._moves(accepted)
                    left.append(replica)
                    if len(suggestions[name]) >= MOST_SUGGESTED:
                        left += group[position + 1 :]
                        break
            self._restore(accepted)
            self._return(home)
        return sorted(left), suggestions

    def _return(self, home: Snapshot) -> None:
        """Let moved replicas stay after all where their device has become free again."""
        for move in self._moves(home):
            away = self.cluster.remove(move.replica)
            state = self.cluster.nodes[move.before.node]
            back = state.possible(self.cluster.services[move.replica[0]], move.before)
            self.cluster.place(move.replica, move.before if back else away)

    def _move_for(self, replica: ReplicaId, most_moves: int) -> bool:
        before = self._snapshot()
        if not self._large:
            new = sorted(other for other in before if other not in self.repair.in_force)
            for other in new:
                self.cluster.remove(other)
            if self.rearrangement.run([[*new, replica]], most_moves, everything=True):
                self._settle()
                return True
            self._restore(before)
            if self.rearrangement.sure:
                return False
        moves = self.repair.make_room(replica, most_moves)
        most = min(most_moves, MOST_MOVES) + 1 if moves is None else len(moves)
        if most <= 1:
            return moves is not None
        after = self._snapshot()
        self._restore(before)
        if self._exchange(replica, sorted(self.repair.in_force & set(self.cluster.where)), most):
            return True
        self._restore(after)
        return moves is not None

    def _exchange(self, replica: ReplicaId, movable: Wanted, below: int) -> bool:
        """On a small cluster: place the replica by moving fewer than `below` of the movable ones, if that is possible."""
        found = fewest_moves(self.cluster, self._options, movable, [replica], below)
        if found is None:
            return False
        for other in found:
            if other in self.cluster.where:
                self.cluster.remove(other)
        for other, assignment in found.items():
            self.cluster.place(other, assignment)
        return True

    def _moves(self, before: Snapshot) -> list[Move]:
        return [
            Move(replica, assignment, self.cluster.assignment(replica))
            for replica, assignment in sorted(before.items())
            if replica in self.repair.in_force and self.cluster.assignment(replica).identity != assignment.identity
        ]

    # --- greedy ---------------------------------------------------------------------------------

    def _fill(self, wanted: Sequence[ReplicaId], hardest_first: bool) -> Wanted:
        by_service: dict[str, Wanted] = {}
        for replica in wanted:
            by_service.setdefault(replica[0], []).append(replica)
        order = sorted(by_service, key=self._hardness)
        if not hardest_first:
            order.reverse()
        unplaced: Wanted = []
        for name in order:
            unplaced += self._fill_service(self.cluster.services[name], sorted(by_service[name]))
        if not self._large:
            self._consolidation.compress()
        return unplaced

    def _hardness(self, name: str) -> tuple[float, int, int, str]:
        options = [found for found in self._options[name].values() if found]
        size = max((_size(found[0]) for found in options), default=0.0)
        return (-size, len(options), self.cluster.services[name].rank, name)

    def _fill_service(self, service: Service, replicas: Wanted) -> Wanted:
        """Give each replica the best device left; only the node that was used last has to be looked at again."""
        heap = [choice for node in self.chooser.options[service.name] if (choice := self.chooser.on_node(node, service))]
        heapify(heap)
        for position, replica in enumerate(replicas):
            if not heap:
                return replicas[position:]
            _key, node, assignment = heap[0]
            self.cluster.place(replica, assignment)
            following = self.chooser.on_node(node, service)
            if following:
                heapreplace(heap, following)
            else:
                heappop(heap)
        return []

    # --- when not everything has a place ---------------------------------------------------------

    def _make_room(self, unplaced: Wanted) -> Wanted:
        """Re-place what this run has placed, where that lets another replica in."""
        while True:
            left: Wanted = []
            hopeless: set[str] = set()
            for replica in sorted(unplaced, key=lambda replica: (self._importance(replica), replica)):
                # Replicas of a service are alike: when one finds no room, the next one will not either.
                if replica[0] in hopeless or not self._room_for(replica):
                    hopeless.add(replica[0])
                    left.append(replica)
            if not left or len(left) == len(unplaced):
                return left
            unplaced = left  # what was re-placed may have made room for those given up before

    def _spread(self, wanted: Sequence[ReplicaId], unplaced: Wanted, base: Snapshot) -> Wanted:
        """Spread what was packed to find out how much fits, if it all still finds room then."""
        packed = self._snapshot()
        missing = set(unplaced)
        self._restore(base)
        if self._make_room(self._fill([replica for replica in wanted if replica not in missing], hardest_first=True)):
            self._restore(packed)
        return unplaced

    def _room_for(self, replica: ReplicaId) -> bool:
        if self.repair.make_room(replica, max_moves=0) is not None:
            return True
        return not self._large and self._consolidation.make_room(replica)

    def _importance(self, replica: ReplicaId) -> tuple[bool, int]:
        service = self.cluster.services[replica[0]]
        return (not service.nodes, service.rank)

    def _admit(self, wanted: Sequence[ReplicaId]) -> Wanted:
        """Let in one group after the other: pinned replicas first, then class by class."""
        base = self._snapshot()
        admitted: Wanted = []
        refused: Wanted = []
        groups: dict[tuple[bool, int], Wanted] = {}
        for replica in wanted:
            groups.setdefault(self._importance(replica), []).append(replica)
        for _importance, group in sorted(groups.items()):
            before = self._snapshot()
            best: tuple[int, Snapshot, Wanted] | None = None
            for together, hardest_first in ((True, True), (False, True), (False, False)):
                self._restore(base if together else before)
                unplaced = self._fill([*admitted, *group] if together else group, hardest_first)
                unplaced = self._make_room(unplaced)
                if not set(unplaced) & set(admitted) and (best is None or len(unplaced) < best[0]):
                    best = (len(unplaced), self._snapshot(), unplaced)
                if best and (not best[0] or self._large):
                    break
            if best is None:  # leaving `admitted` where it is always works
                raise AssertionError("there is always a best one")
            self._restore(best[1])
            admitted += [replica for replica in group if replica not in set(best[2])]
            refused += best[2]
        return refused

    # --- snapshots --------------------------------------------------------------------------------

    def _snapshot(self) -> Snapshot:
        return {replica: self.cluster.assignment(replica) for replica in self.cluster.where}

    def _restore(self, snapshot: Snapshot) -> None:
        now = self._snapshot()
        for replica, assignment in now.items():
            if snapshot.get(replica) != assignment:
                self.cluster.remove(replica)
        for replica, assignment in snapshot.items():
            if replica not in self.cluster.where:
                self.cluster.place(replica, assignment)


def _size(option: Option) -> float:
    """How much of a GPU, or how many, a device takes."""
    if option.profile:
        return option.profile.size / 8
    return float(option.gpus) if option.gpus else 1 / option.share
