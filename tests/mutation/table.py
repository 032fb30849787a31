"""Which tests should notice a mutant of which file, and mutants that have a name."""

import ast
from dataclasses import dataclass

from mutation.operators import Mutant, functions

SEED = 1
PER_FILE = 2

TARGETS: dict[str, tuple[str, ...]] = {
    "cells/rnn.py": ("cells/test_rnn.py", "cells/test_torch.py"),
    "cells/lstm.py": ("cells/test_lstm.py", "cells/test_torch.py", "cells/test_init.py"),
    "cells/lstm1997.py": ("cells/test_lstm1997.py",),
    "cells/clockwork.py": ("cells/test_clockwork.py",),
    "cells/gru.py": ("cells/test_gru.py", "cells/test_torch.py", "cells/test_init.py"),
    "cells/janet.py": ("cells/test_janet.py", "cells/test_init.py"),
    "cells/stat_ru.py": ("cells/test_stat_ru.py",),
    "cells/eurnn.py": ("cells/test_eurnn.py",),
    "cells/unitary.py": ("cells/test_urnn.py", "cells/test_rnn.py"),
    "cells/urnn.py": ("cells/test_urnn.py",),
    "cells/full_urnn.py": ("cells/test_urnn.py",),
    "cells/goru.py": ("cells/test_goru.py",),
    "cells/rotations.py": ("cells/test_eurnn.py", "cells/test_goru.py"),
    "cells/nru.py": ("cells/test_nru.py",),
    "cells/ntm.py": ("cells/test_ntm.py",),
    "cells/dntm.py": ("cells/test_dntm.py",),
    "cells/tardis.py": ("cells/test_tardis.py",),
    "cells/decaynet.py": ("cells/test_decaynet.py",),
    "cells/decaynet_gru.py": ("cells/test_decaynet_gru.py",),
    "cells/decay.py": ("cells/test_decaynet.py", "cells/test_decaynet_gru.py"),
    "cells/sru.py": ("cells/test_sru.py", "cells/test_normalised_cells.py"),
    "cells/tlstm.py": ("cells/test_tlstm.py",),
    "cells/fastgrnn.py": ("cells/test_fastgrnn.py",),
    "cells/irc.py": ("cells/test_irc.py",),
    "cells/irc_diagonal.py": ("cells/test_irc.py",),
    "cells/ihc.py": ("cells/test_ihc.py",),
    "cells/connected.py": ("cells/test_irc.py", "cells/test_ihc.py"),
    "cells/gated.py": ("cells/test_gated.py", "cells/test_lstm.py", "cells/test_irc.py"),
    "cells/init.py": ("cells/test_init.py",),
    "cells/memory/controllers.py": ("cells/test_ntm.py", "cells/test_normalised_memory.py"),
    "cells/memory/addressing.py": ("cells/memory",),
    "cells/memory/access.py": ("cells/memory",),
    "cells/memory/discrete.py": ("cells/memory", "cells/test_tardis.py"),
    "cells/memory/reinforce.py": ("cells/test_reinforce.py",),
    "cells/wrap/normalise.py": ("cells/test_normalise.py", "cells/test_normalised_cells.py"),
    "cells/wrap/noise.py": ("cells/test_dropout.py", "cells/test_zoneout.py"),
    "optimisers/rules/lstm.py": ("optimisers/test_rules.py",),
    "optimisers/rules/decaynet.py": ("optimisers/test_rules.py",),
    "optimisers/rules/global_decaynet.py": ("optimisers/test_rules.py",),
    "optimisers/rules/mtl2l.py": ("optimisers/test_rules.py",),
    "optimisers/rules/dmsgd.py": ("optimisers/test_rules.py",),
    "optimisers/rules/m2sgd.py": ("optimisers/test_rules.py",),
    "optimisers/rules/global_m2sgd.py": ("optimisers/test_global_m2sgd.py",),
    "optimisers/rules/anytime.py": ("optimisers/test_anytime.py", "optimisers/test_rules.py"),
    "optimisers/rules/pacer.py": ("optimisers/test_pacer.py", "optimisers/test_rules.py"),
    "optimisers/rules/celo.py": ("optimisers/test_celo.py", "optimisers/test_rules.py"),
    "optimisers/rules/velo.py": ("optimisers/test_velo.py", "optimisers/test_rules.py"),
    "optimisers/rules/small_fc.py": ("optimisers/test_pacer.py", "optimisers/test_rules.py"),
    "optimisers/rules/features.py": ("optimisers/test_pacer.py", "optimisers/test_rules.py"),
    "optimisers/rules/preprocess.py": ("optimisers/test_rules.py",),
    "optimisers/rules/hierarchical.py": (
        "optimisers/test_hierarchical.py",
        "optimisers/test_rules.py",
    ),
    "optimisers/rules/ihc_lstm.py": ("optimisers/test_rules.py",),
    "optimisers/rules/meta_sgd.py": ("optimisers/test_rules.py",),
    "optimisers/rules/recurrent.py": ("optimisers/test_recurrent.py", "optimisers/test_rules.py"),
    "continual/strategies/gem.py": ("continual/test_gem.py", "continual/test_screening.py"),
    "continual/screening.py": ("continual/test_screening.py",),
    "tasks/streams/patches.py": ("tasks/streams/test_patches.py",),
    "continual/strategies/agem.py": ("continual/test_replay_strategies.py",),
    "continual/strategies/er.py": ("continual/test_replay_strategies.py",),
    "continual/strategies/ewc.py": ("continual/test_ewc.py",),
    "continual/strategies/hat.py": ("continual/test_hat.py",),
    "continual/strategies/masks.py": ("continual/test_hat.py",),
    "continual/strategies/metasgd_cl.py": ("continual/test_metasgd_cl.py",),
    "continual/strategies/online_ewc.py": ("continual/test_online_ewc.py",),
    "continual/strategies/joint.py": ("continual/test_replay_strategies.py",),
    "continual/strategies/stable.py": ("continual/test_learner.py",),
    "continual/strategies/freeze.py": ("continual/test_learner.py",),
    "continual/fisher.py": ("continual/test_ewc.py", "continual/test_online_ewc.py"),
    "continual/gradients.py": ("continual/test_gradients.py", "continual/test_losses.py"),
    "continual/rows.py": ("continual/test_gradients.py",),
    "continual/weighting.py": ("continual/test_losses.py",),
    "continual/metrics.py": ("continual/test_metrics.py",),
    "continual/strategies/der.py": ("contracts/test_strategy_references.py",),
    "continual/strategies/derpp.py": ("contracts/test_strategy_references.py",),
    "continual/strategies/er_ace.py": ("contracts/test_strategy_references.py",),
    "continual/strategies/gdumb.py": ("contracts/test_strategy_references.py",),
    "continual/strategies/icarl.py": (
        "contracts/test_strategy_references.py",
        "continual/test_distilled.py",
    ),
    "continual/strategies/lwf.py": (
        "contracts/test_strategy_references.py",
        "continual/test_distilled.py",
    ),
    "continual/strategies/mas.py": (
        "contracts/test_strategy_references.py",
        "continual/test_ewc.py",
    ),
    "continual/strategies/si.py": ("contracts/test_strategy_references.py",),
    "continual/strategies/slda.py": ("contracts/test_strategy_references.py",),
    "continual/growing/widening.py": ("continual/growing",),
    "continual/growing/deeper.py": ("continual/growing",),
    "continual/growing/heads.py": ("continual/growing", "continual/test_growing_strategies.py"),
    "continual/lifelong/curriculum.py": (
        "continual/test_lifelong.py",
        "continual/test_lifelong_draws.py",
        "continual/test_triggers.py",
    ),
    "continual/lifelong/triggers.py": ("continual/test_triggers.py",),
    "continual/lifelong/levels.py": ("continual/test_lifelong.py",),
    "continual/lifelong/measures.py": ("continual/test_lifelong.py",),
    "continual/nearest.py": (
        "contracts/test_strategy_references.py",
        "continual/test_distilled.py",
    ),
    "continual/columns.py": ("contracts/test_strategy_references.py", "continual/test_columns.py"),
    "continual/classes.py": ("continual/test_classes.py", "contracts/test_strategy_references.py"),
    "dynamics/equilibria.py": ("dynamics/test_maps.py",),
    "dynamics/energies.py": ("dynamics/test_optimisation.py",),
    "dynamics/exponents.py": ("dynamics/test_exponents.py",),
    "dynamics/fixed.py": ("dynamics/test_fixed.py",),
    "dynamics/gates.py": ("dynamics/test_gates.py",),
    "dynamics/gradients.py": ("dynamics/test_gradients.py",),
    "dynamics/hessian.py": ("dynamics/test_hessian.py",),
    "dynamics/hopfield.py": ("dynamics/test_memories.py",),
    "dynamics/landscapes.py": ("dynamics/test_fields.py", "dynamics/test_optimisation.py"),
    "dynamics/memories.py": ("dynamics/test_memories.py",),
    "dynamics/phases.py": ("dynamics/test_gates.py",),
    "dynamics/responses.py": ("dynamics/test_gates.py", "dynamics/test_optimisation.py"),
    "dynamics/rules.py": ("dynamics/test_rules.py",),
    "dynamics/spectra.py": ("dynamics/test_rules.py",),
    "dynamics/solving.py": ("dynamics/test_solving.py", "dynamics/test_fixed.py"),
    "dynamics/wormholes.py": ("dynamics/test_fields.py",),
    "models/attention_window.py": ("models/test_draw.py",),
    "models/choices.py": ("models/test_choices.py",),
    "results/contrast.py": ("results/test_survival.py",),
    "results/survival.py": ("results/test_survival.py",),
    "models/draw.py": ("models/test_draw.py",),
    "models/language_model.py": ("models/test_language_model.py",),
    "training/averaging.py": ("training/test_averaging.py",),
    "training/pruning.py": ("experiments/test_pruning.py",),
    "estimators/paired.py": ("estimators/test_compare.py",),
    "meta/bptt.py": ("meta/test_trainer.py",),
    "meta/evolution.py": ("meta/test_evolution.py",),
    "meta/whole.py": ("meta/test_whole.py",),
    "meta/validation.py": ("meta/test_whole.py",),
    "meta/unroll.py": ("meta/test_unroll.py", "meta/test_evolution.py"),
}
"""Files under ``src/attractor``, and what under ``tests`` is held to them."""


@dataclass(frozen=True)
class Named:
    """A change that tests once let through, or that is of no small kind: code and what replaces it.

    The code is found by its meaning, not by its layout or line.
    """

    name: str
    path: str
    function: str
    before: str
    after: str
    tests: tuple[str, ...]

    def of(self, source: str) -> Mutant:
        """The file with the change."""
        tree = ast.parse(source)
        old, new = _code(self.before), _code(self.after)
        wanted = ast.dump(old)
        places = [
            node
            for name, function in functions(tree)
            if name == self.function
            for node in ast.walk(function)
            if ast.dump(node) == wanted
        ]
        if not places:
            raise LookupError(
                f"the mutant {self.name!r} expects {self.before!r} in {self.function} of "
                f"src/attractor/{self.path}, which is not there. If the code has moved or changed, "
                "say where it is now in tests/mutation/table.py."
            )
        return Mutant(f"{self.path} {self.name}", tree, places[0], new)


def _code(text: str) -> ast.AST:
    (statement,) = ast.parse(text).body
    return statement.value if isinstance(statement, ast.Expr) else statement


NAMED: tuple[Named, ...] = (
    Named(
        "dropout also on the input of the first layer",
        "cells/layer/recurrent.py",
        "Recurrent._run",
        "layer and self.dropout",
        "self.dropout",
        ("cells/test_layer.py", "cells/test_dropout.py", "cells/test_torch.py"),
    ),
    Named(
        "another initial alpha of IRC-SRU and IRC-T-LSTM",
        "cells/irc_diagonal.py",
        "DiagonalConnection.__init__",
        "torch.full((hidden_size,), 2.0, **to)",
        "torch.full((hidden_size,), 1.0, **to)",
        ("cells/test_irc.py", "cells/test_init.py"),
    ),
    Named(
        "another initial weight_previous of T-LSTM",
        "cells/tlstm.py",
        "TLSTMCell.__init__",
        "weights_(self.weight_previous, input_init, hidden_size, generator)",
        "weights_(self.weight_previous, input_init, 1, generator)",
        ("cells/test_tlstm.py", "cells/test_init.py"),
    ),
    Named(
        "GEM projects only if the mean overlap is negative",
        "continual/strategies/gem.py",
        "GEM.after_backward",
        "bool(against.any())",
        "bool(G.dot(g).mean() < 0)",
        ("continual/test_gem.py",),
    ),
    Named(
        "EWC's Fisher information in training mode",
        "continual/weighting.py",
        "evaluating",
        "model.eval()",
        "model.train()",
        ("continual/test_ewc.py",),
    ),
    Named(
        "HAT counts units in use at another sharpness",
        "continual/strategies/hat.py",
        "HAT.end_task",
        "self.model.masks(task.place, self.sharpness)",
        "self.model.masks(task.place, self.model.s)",
        ("continual/test_hat.py",),
    ),
    Named(
        "PES forgets earlier moves: truncated evolution strategies",
        "meta/evolution.py",
        "_Pair.stretch",
        "self.moved[name] + move if by.persistent else move",
        "move",
        ("meta/test_evolution.py",),
    ),
    Named(
        "PES moves frozen weights",
        "meta/opposed.py",
        "trainable",
        "{name: p for name, p in rule.named_parameters() if p.requires_grad}",
        "{name: p for name, p in rule.named_parameters()}",
        ("meta/test_evolution.py",),
    ),
    Named(
        "learners that end absurdly update the rule",
        "meta/bptt.py",
        "BPTT.stretch",
        "Stretch(loss, last, lost=lost, well=not worse, moves=not worse)",
        "Stretch(loss, last, lost=lost, well=not worse)",
        ("meta/test_one_trainer.py",),
    ),
    Named(
        "anytime without sigma",
        "optimisers/rules/anytime.py",
        "Anytime.update",
        "self.sizes(params, view) * d",
        "d",
        ("optimisers/test_anytime.py", "optimisers/test_rules.py"),
    ),
    Named(
        "anytime measures gradients by those of all learners",
        "optimisers/rules/anytime.py",
        "Anytime.update",
        "v / whole[..., 2]",
        "v.mean(0) / whole[..., 2]",
        ("optimisers/test_rules.py",),
    ),
    Named(
        "anytime has one sigma for all tensors",
        "optimisers/rules/anytime.py",
        "Anytime.sizes",
        "view.fan_in(tensor)",
        "view.fan_in(0)",
        ("optimisers/test_anytime.py",),
    ),
    Named(
        "RNNprop without Adam's correction of the momentum",
        "optimisers/rules/rnnprop.py",
        "RNNprop.update",
        "m / (1 - self.beta1 ** t) * scale",
        "m * scale",
        ("optimisers/test_rules.py",),
    ),
    Named(
        "DMSGD without gamma",
        "optimisers/rules/dmsgd.py",
        "DMSGD.rates",
        "self.gamma * dynamic",
        "dynamic",
        ("optimisers/test_rules.py",),
    ),
    Named(
        "the perturbation of learners falls as one over the root of t",
        "meta/bptt.py",
        "BPTT._noise",
        "self.perturb / times",
        "self.perturb / times.sqrt()",
        ("meta/test_trainer.py",),
    ),
    Named(
        "gates without a bias all get the first sums that were learned",
        "cells/gated.py",
        "joined",
        "rest[bias:]",
        "rest",
        ("cells/test_normalised_cells.py",),
    ),
    Named(
        "the IHC-LSTM-optimiser is the LSTM-optimiser",
        "optimisers/rules/ihc_lstm.py",
        "IHCLSTMOptimiser.__init__",
        "LSTMOptimiser(cell='ihc_lstm', **options)",
        "LSTMOptimiser(cell='lstm', **options)",
        ("optimisers/test_rules.py",),
    ),
    Named(
        "ER also replays the present task",
        "continual/strategies/er.py",
        "ER._draw",
        "range(task)",
        "range(task + 1)",
        ("continual/test_replay_strategies.py",),
    ),
    Named(
        "Joint forgets the first task",
        "continual/strategies/joint.py",
        "Joint._draw",
        "self.stream.tasks[:task]",
        "self.stream.tasks[1:task]",
        ("continual/test_replay_strategies.py",),
    ),
)
