"""The command: looks into a node, disturbs it, and says what is wrong with bad input."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from node_agent.nvml.simulated import SimulatedNode
from node_agent.nvml.simulated.command import main


@pytest.fixture
def run(node, capsys):
    """Run a verb on the node; gives its JSON."""

    def run_verb(*arguments):
        assert main(["--state", str(node.state_dir), *arguments, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run_verb


@pytest.fixture
def fail(node, capsys):
    """Run a verb that is refused; gives what it says."""

    def run_verb(*arguments):
        assert main(["--state", str(node.state_dir), *arguments]) == 2
        return capsys.readouterr().err

    return run_verb


def test_a_node_is_created_from_models(tmp_path, capsys):
    arguments = ["create-node", "--gpu", "a30", "--gpu", "a30", "--id-map", "mixed", "--mig", "off"]
    assert main(["--state", str(tmp_path), *arguments]) == 0
    made = SimulatedNode(tmp_path)
    assert [each.id_map for each in made.state().gpus] == ["identity", "swapped"]
    assert not made.gpu(0).mig_current
    made.close()
    assert made.gpu_uuids()[0] in capsys.readouterr().out
    made.close()


def test_gpus_and_their_mig_devices_are_listed(run):
    made = run("create", "--gpu", "1", "--profile", "1g.20gb", "--start", "2")
    rows = run("list")
    assert [each["name"] for each in rows] == [
        "NVIDIA A100-SXM4-40GB",
        "NVIDIA H100 80GB HBM3",
        "MIG 1g.20gb",
    ]
    assert (rows[2]["gpu"], rows[2]["uuid"]) == (1, made["uuid"])


def test_instances_are_listed_and_destroyed(run):
    made = run("create", "--gpu", "0", "--profile", "2g.10gb", "--start", "4")
    (gi,) = run("lgi")
    assert (gi["profile"], gi["placement"], gi["gi"]) == ("2g.10gb", "4:2", made["gi"])
    (ci,) = run("lci")
    assert (ci["ci"], ci["uuid"]) == (0, made["uuid"])
    run("destroy", "--gpu", "0", "--gi", str(made["gi"]))
    assert run("lgi") == []


def test_an_instance_can_be_made_without_compute_instance(run):
    assert run("create", "--gpu", "0", "--profile", "1g.5gb", "--no-ci")["uuid"] is None
    assert run("lci") == []


def test_profiles_show_free_and_total(run):
    run("create", "--gpu", "0", "--profile", "3g.20gb", "--start", "0")
    free = {each["profile"]: (each["free"], each["total"]) for each in run("lgip")}
    assert free["1g.5gb"] == (3, 7)
    assert free["4g.20gb"] == (0, 1)


def test_processes_come_and_go(run, fail):
    made = run("create", "--gpu", "0", "--profile", "1g.5gb")
    pid = run("attach", "--gpu", "0", "--gi", str(made["gi"]))["pid"]
    (row,) = run("processes")
    assert (row["gi"], row["ci"], row["pid"]) == (made["gi"], 0, pid)
    assert "IN_USE" in fail("destroy", "--gpu", "0", "--gi", str(made["gi"]))
    run("detach", "--pid", str(pid))
    assert run("processes") == []


def test_faults_are_set_listed_and_cleared(run, node):
    run("fault", "--function", "nvmlGpuInstanceDestroy", "--code", "in_use", "--times", "3")
    (row,) = run("faults")
    assert (row["function"], row["code"], row["times"]) == ("nvmlGpuInstanceDestroy", 19, 3)
    run("clear-faults")
    assert node.state().faults == []


def test_a_gpu_is_lost_and_comes_back_with_a_reboot(run):
    before = run("reboot")["boot_id"]
    run("lose-gpu", "--gpu", "1")
    assert [each["lost"] for each in run("list")] == [False, True]
    assert run("reboot", "--order", "1", "0")["boot_id"] != before
    assert [each["name"][:11] for each in run("list")] == ["NVIDIA H100", "NVIDIA A100"]
    assert [each["lost"] for each in run("list")] == [False, False]


def test_the_mode_waits_for_a_client_to_go(run):
    run("client", "--gpu", "1")
    assert run("mig", "--gpu", "1", "off")["activation_status"] == "IN_USE"
    assert run("list")[1]["mig"] == "Disabled*"
    run("client", "--gpu", "1", "--clear")
    assert run("mig", "--gpu", "1", "off")["activation_status"] == "SUCCESS"
    assert run("list")[1]["mig"] == "Disabled"


def test_a_reset_takes_the_instances(run):
    run("create", "--gpu", "0", "--profile", "1g.5gb")
    run("reset", "--gpu", "0")
    assert run("lgi") == []


def test_switches_and_events_reach_the_state(run, node):
    run("set", "--permission", "user", "--uuids", "random")
    run("xid", "--gpu", "0", "--xid", "79")
    assert (node.state().options.permission, node.state().options.uuids) == ("user", "random")
    assert [each.value for each in node.state().events] == [79]
    run("recovery", "--gpu", "1", "node-reboot")
    assert [gpu.recovery_action for gpu in node.state().gpus] == [0, 2]
    run("reload-driver")
    assert node.driver_load() == 2


def test_models_are_listed_without_a_node(tmp_path, capsys):
    assert main(["--state", str(tmp_path), "models"]) == 0
    assert "rtx-pro-6000-se" in capsys.readouterr().out


def test_an_empty_table_says_so(node, capsys):
    assert main(["--state", str(node.state_dir), "lgi"]) == 0
    assert capsys.readouterr().out == "No GPU instances found: Not Found\n"


@pytest.mark.parametrize(
    ("arguments", "field", "value", "allowed"),
    [
        (["create-node", "--gpu", "a999"], "gpu model", "a999", "a100-sxm4-40gb"),
        (["create", "--gpu", "9", "--profile", "1g.5gb"], "gpu", "9", "0 (GPU-"),
        (["create", "--gpu", "0", "--profile", "9g.5gb"], "profile", "9g.5gb", "1g.5gb"),
        (["create", "--gpu", "0", "--profile", "2g.10gb", "--start", "6"], "start", "6", "0, 2, 4"),
        (["destroy", "--gpu", "0", "--gi", "3"], "gi", "3", "none exists"),
        (["detach", "--pid", "5"], "pid", "5", "processes"),
        (["fault", "--function", "nvmlNo"], "function", "nvmlNo", "nvmlGpuInstanceDestroy"),
        (["fault", "--function", "*", "--code", "NO"], "code", "NO", "IN_USE"),
        (["fault", "--function", "*", "--code", "-4"], "code", "-4", "0 to 999"),
        (["fault", "--function", "*", "--times", "0"], "times", "0", "-1"),
        (["fault", "--function", "*", "--skip", "-1"], "skip", "-1", "0 or more"),
        (["fault", "--function", "*", "--latency", "-1"], "latency_s", "-1", "0 or more"),
        (["reboot", "--order", "0", "0"], "order", "0, 0", "order of all"),
        (["set"], "set", "nothing", "--permission"),
        (["set", "--hidden-symbols", "nvmlNo"], "hidden_symbols", "nvmlNo", "nvmlInit"),
    ],
)
def test_bad_input_names_field_value_and_allowed(fail, arguments, field, value, allowed):
    said = fail(*arguments)
    assert said.startswith("error: ")
    assert field in said
    assert value in said
    assert allowed in said
    assert said.count("\n") == 1


def test_a_directory_without_a_node_is_bad_input(tmp_path, capsys):
    assert main(["--state", str(tmp_path), "lgi"]) == 2
    assert "holds no node" in capsys.readouterr().err


def test_it_runs_as_a_module(node):
    command = [sys.executable, "-m", "node_agent.nvml.simulated", "--state", str(node.state_dir)]
    done = subprocess.run(
        [*command, "list"], capture_output=True, text=True, timeout=30, check=True
    )
    assert node.gpu_uuids()[0] in done.stdout
    refused = subprocess.run(
        [*command, "frob"], capture_output=True, text=True, timeout=30, check=False
    )
    assert refused.returncode == 2


def test_every_switch_can_be_set(run, node):
    arguments = ["--profile-info-needs-mig", "on", "--ampere-auto-reset", "off"]
    run("set", *arguments, "--stale-parent-handles", "on", "--hidden-symbols", "nvmlInit_v2")
    run("set", "--recovery-field", "unknown")
    options = node.state().options
    assert options.recovery_field == "unknown"
    assert (options.profile_info_needs_mig, options.ampere_auto_reset) == (True, False)
    assert (options.stale_parent_handles, options.hidden_symbols) == (True, ["nvmlInit_v2"])


def test_the_memory_figures_of_another_driver_can_be_taken(tmp_path, capsys):
    arguments = ["--state", str(tmp_path), "--json"]
    assert main([*arguments, "create-node", "--gpu", "a30", "--memory", "variant"]) == 0
    capsys.readouterr()
    assert main([*arguments, "lgip"]) == 0
    assert 11672 in {each["memory_mib"] for each in json.loads(capsys.readouterr().out)}
