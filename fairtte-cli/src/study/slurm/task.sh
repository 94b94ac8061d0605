#!/bin/bash
# A task of the study "{{ name }}": the trials in its line of the list $1, one after the other.
{%- for option in options %}
#SBATCH {{ option }}
{%- endfor %}

most_restarts=20
list=$1
places=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" "$list")
if [ -z "$places" ]; then
    echo "task $SLURM_ARRAY_TASK_ID has no line in $list" >&2
    exit 4
fi

# SLURM signals this shell two minutes before the end of the time; the trial saves its state and ends with 75. SIGTERM often
# reaches the trial too, so it is passed on as SIGUSR1: a second SIGTERM would end the trial before its state is saved.
stop=
child=
forward() {
    stop=$1
    [ -z "$child" ] || kill -s USR1 "$child" 2>/dev/null
}
trap 'forward USR1' USR1
trap 'forward TERM' TERM

# A trial that is killed (137: often because of insufficient memory) must not take the others of its pack along: the next attempt counts
# the kill, and leaves a trial alone that was killed three times.
set -- $places
attempts=$(($# * 3 + 1))
while :; do
    echo "task ${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID} on ${SLURMD_NODENAME:-$(hostname)}, restart ${SLURM_RESTART_COUNT:-0}: trials $places"
    {{ command }} $places --threads "${SLURM_CPUS_PER_TASK:-${SLURM_CPUS_ON_NODE:-1}}" &
    child=$!
    # A signal may have come before the child.
    [ -z "$stop" ] || kill -s USR1 "$child" 2>/dev/null
    # A signal ends `wait`, not the child.
    while kill -0 "$child" 2>/dev/null; do wait "$child"; done
    wait "$child"
    code=$?
    child=
    [ -z "$stop" ] || break
    [ "$code" -gt 128 ] || [ "$code" = 101 ] || break
    attempts=$((attempts - 1))
    [ "$attempts" -gt 0 ] || break
    echo "the program was killed ($code); the task continues with what is left" >&2
done

# Signalled before the program could listen.
if [ -n "$stop" ] && [ "$code" -gt 128 ]; then
    code=75
fi
# A task that got SIGTERM was cancelled, or preempted: then SLURM requeues it itself. If requeueing is refused,
# `fairtte study submit` submits what is left.
if [ "$code" = 75 ] && [ "$stop" != TERM ]; then
    if [ "${SLURM_RESTART_COUNT:-0}" -lt "$most_restarts" ]; then
        scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
    else
        echo "restarted $most_restarts times; \`fairtte study submit\` submits what is left" >&2
    fi
fi
exit "$code"
