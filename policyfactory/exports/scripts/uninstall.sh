#=== start
#!/bin/sh
@HEAD@
#
# sh THIS_FILE           show what it would do; changes nothing
# sh THIS_FILE remove    do it; what is done already is left alone
# sh THIS_FILE jobs      after the restart: take the numbers from the jobs that wait
#
# SLURM_CONF names slurm.conf where it is not the one that Slurm itself says.
set -u

say() { printf '%s\n' "$*"; }
refuse() { printf 'refused: %s\n' "$*" >&2; exit 1; }

case "${1:-show}" in
show | remove | jobs) mode=${1:-show} ;;
*) say "usage: sh $0 [show | remove | jobs]" >&2; exit 2 ;;
esac

# The value of a line of slurm.conf; the last one of its name counts, in any case of letters.
setting() {
  awk -v name="$1" 'BEGIN { name = tolower(name) }
    { line = $0; sub(/#.*/, "", line); at = index(line, "="); key = substr(line, 1, at - 1); gsub(/[ \t]/, "", key) }
    at && tolower(key) == name { value = substr(line, at + 1); gsub(/^[ \t"]+|[ \t"]+$/, "", value) }
    END { print value }' "$conf"
}

# Write slurm.conf anew through an awk program; the file of before stays beside it.
rewrite() {
  cp -p "$conf" "$conf.before_uninstall" || refuse "$conf cannot be copied; run it as root"
  awk "$@" "$conf.before_uninstall" > "$conf.uninstalling" && cat "$conf.uninstalling" > "$conf" &&
    rm "$conf.uninstalling" || refuse "$conf cannot be written; that of before is $conf.before_uninstall"
}

# Move a file of ours away; it is kept as NAME.removed.
put_away() {
  mv "$1" "$1.removed" || refuse "$1 cannot be moved; run it as root"
}

is_ours() {
  [ -f "$1" ] && grep -q 'Made by policyfactory\|Written by policyfactory\|policyfactory, policy' "$1"
}

# Refuse where another file beside slurm.conf, which it may include, has a line of this name and value.
not_elsewhere() {
  for file in "$folder"/*.conf "$folder"/*/*.conf; do
    [ -f "$file" ] && [ "$file" != "$conf" ] || continue
    if grep -Eiq "^[[:space:]]*$1[[:space:]=].*$2" "$file"; then
      refuse "$file has $1 with $2: take that out first, then run this again"
    fi
  done
}

steps=0
# Say a step, and tell whether it is to be done now.
step() {
  steps=$((steps + 1))
  if [ "$mode" = remove ]; then say "doing: $*"; return 0; fi
  say "would: $*"
  return 1
}

#=== conf
conf=${SLURM_CONF:-$(scontrol show config 2>/dev/null | awk '$1 == "SLURM_CONF" { print $3 }')}
[ -n "$conf" ] || refuse "cannot ask Slurm where slurm.conf is (scontrol show config); say SLURM_CONF=FILE sh $0"
[ -f "$conf" ] || refuse "$conf: there is no such slurm.conf; say SLURM_CONF=FILE sh $0"
folder=$(dirname "$conf")
conf=$folder/$(basename "$conf") # as the files beside it are named

#=== waiting
# The jobs that wait, the waiting tasks of an array in one list, each with its nice value; the argument is a filter.
waiting() {
  squeue -h -a -r -t PD -o "$1" | sed -n "$2" | @BY_ARRAY@
}

#=== lua
# Slurm takes job_submit/lua for lua.
removed_lua() { case ",$(setting JobSubmitPlugins | tr -d ' ' | sed 's|job_submit/||g')," in *,lua,*) return 1 ;; esac; }

remove() {
  if is_ours "$folder/policyfactory.lua"; then
    if grep -q 'policyfactory' "$folder/job_submit.lua" 2>/dev/null; then
      refuse "$folder/job_submit.lua is your own and calls policyfactory.lua: take the lines with policyfactory out of it, then run this again"
    fi
    step "move $folder/policyfactory.lua to policyfactory.lua.removed" && put_away "$folder/policyfactory.lua"
    return
  fi
  if [ -f "$folder/job_submit.lua" ] && ! is_ours "$folder/job_submit.lua"; then
    say "$folder/job_submit.lua is not of policyfactory; it stays, and so does slurm.conf"
    return
  fi
  if is_ours "$folder/job_submit.lua"; then
    not_elsewhere JobSubmitPlugins lua
    if ! removed_lua; then
      step "take lua out of JobSubmitPlugins in $conf" && rewrite '
        { line = $0; sub(/#.*/, "", line); at = index(line, "="); key = substr(line, 1, at - 1); gsub(/[ \t]/, "", key) }
        at && tolower(key) == "jobsubmitplugins" {
          n = split(substr(line, at + 1), name, ","); kept = ""
          for (i = 1; i <= n; i++) {
            gsub(/[ \t"]/, "", name[i])
            if (name[i] != "lua" && name[i] != "job_submit/lua" && name[i] != "") kept = kept (kept == "" ? "" : ",") name[i]
          }
          if (kept != "") print "JobSubmitPlugins=" kept
          next
        }
        { print }'
    fi
    step "move $folder/job_submit.lua to job_submit.lua.removed" && put_away "$folder/job_submit.lua"
  fi
}

loaded() { scontrol show config | awk '$1 == "JobSubmitPlugins" { print "," $3 "," }' | grep -Eq ',(job_submit/)?lua,'; }

still_loaded() {
  if [ -f "$folder/job_submit.lua" ] && ! is_ours "$folder/job_submit.lua"; then return 1; fi
  loaded
}

#=== plugin
remove() {
  not_elsewhere PrioritySiteFactorPlugin site_factor/policyfactory
  if setting PrioritySiteFactorPlugin | grep -q '^site_factor/policyfactory$'; then
    step "take PrioritySiteFactorPlugin and PrioritySiteFactorParameters out of $conf" && rewrite '
      { line = $0; sub(/#.*/, "", line); at = index(line, "="); key = substr(line, 1, at - 1); gsub(/[ \t]/, "", key) }
      at && tolower(key) ~ /^prioritysitefactor(plugin|parameters)$/ { next }
      { print }'
  elif [ -n "$(setting PrioritySiteFactorPlugin)" ]; then
    say "PrioritySiteFactorPlugin is not that of policyfactory; it stays"
  fi
  places=${PLUGINDIR:-$(scontrol show config 2>/dev/null | awk '$1 == "PluginDir" { print $3 }' | tr ':' ' ')}
  for place in $places; do
    plugin=$place/site_factor_policyfactory.so
    if [ -f "$plugin" ]; then
      is_ours "$plugin" || refuse "$plugin does not look like policyfactory's; it stays"
      step "remove $plugin" && { rm "$plugin" || refuse "$plugin cannot be removed; run it as root"; }
    fi
  done
}

# scontrol does not show which plugin of this kind is loaded: it is while slurm.conf has it, and until a restart.
still_loaded() {
  setting PrioritySiteFactorPlugin | grep -q policyfactory && return 0
  booted=$(SLURM_TIME_FORMAT=standard scontrol show config | awk '$1 == "BOOT_TIME" { print $3 }')
  printf '%s %s\n' "$(date -r "$conf" +%Y-%m-%dT%H:%M:%S)" "$booted" | awk '{ exit !($1 > $2) }'
}

#=== weights
remove() {
  not_elsewhere Include @FILE@
  if grep -Eiq '^[[:space:]]*include[[:space:]]+([^[:space:]]*/)?@FILE@([[:space:]]|$)' "$conf"; then
    step "take the line Include @FILE@ out of $conf, and the mark #policyfactory from the lines of before" && rewrite '
      tolower($1) == "include" && $2 ~ /(^|\/)@FILE@$/ { next }
      { sub(/^#policyfactory /, ""); print }'
  elif grep -q '^#policyfactory ' "$conf"; then
    step "take the mark #policyfactory from the lines of before in $conf" &&
      rewrite '{ sub(/^#policyfactory /, ""); print }'
  fi
  if is_ours "$folder/@FILE@"; then
    step "move $folder/@FILE@ to @FILE@.removed" && put_away "$folder/@FILE@"
  fi
}

still_loaded() { false; }
jobs() { say "no job has a number of these weights: Slurm computes all priorities anew"; }

#=== factor_jobs
jobs() {
  # Those whose number is 0 already are left alone; that of a held job nothing shows.
  waiting '%i %y' p | while read -r job nice; do
    number=$(sprio -h -j "${job%%_*}" -o '%S' 2>/dev/null | tr -d ' ' | grep -E '^[0-9]+$' | sort -rn | head -n 1)
    [ "$number" != 0 ] || continue
    scontrol update "JobId=$job" SiteFactor=0 </dev/null && say "job $job: site_factor ${number:-not shown} to 0"
  done
}

#=== priority_jobs
jobs() {
  # Held jobs stay held; a release sets nice to 0, so it is set again.
  waiting '%Q %i %y' '/^0 /!s/^[0-9]* //p' | while read -r job nice; do
    scontrol release "$job" </dev/null && scontrol update "JobId=$job" "Nice=$nice" </dev/null &&
      say "job $job: the plugin's own priority"
  done
}

#=== log_jobs
jobs() { say "a log-only export changed no job"; }

#=== end
if [ "$mode" = jobs ]; then
  still_loaded && refuse "slurmctld still has it loaded; sh $0 remove, restart slurmctld, then this"
  jobs
  exit
fi
remove
if [ "$steps" -eq 0 ]; then
  say "nothing of this export is installed beside $conf"
elif [ "$mode" = show ]; then
  say "to do it: sh $0 remove"
else
  say "now restart slurmctld (systemctl restart slurmctld), then: sh $0 jobs"
fi
say "other settings of the installation (PriorityType, SchedulerType, SchedulerParameters) stay: they do no harm"

#=== nice
#!/bin/sh
@HEAD@
#
# sh THIS_FILE           show which of your waiting jobs have a nice value
# sh THIS_FILE remove    set it to 0
set -u

listed() {
  squeue -h -a -r --user="$(id -u)" -t PD -o '%i %y' | awk '$2 > 0' | @BY_ARRAY@
}

if crontab -l 2>/dev/null | grep '@FILE@'; then
  printf '%s\n' "these lines of your crontab run the script: take them out first (crontab -e)" >&2
fi
case "${1:-show}" in
show) listed | while read -r job nice; do printf '%s\n' "would: set the nice value of job $job from $nice to 0"; done ;;
remove)
  listed | while read -r job nice; do
    scontrol update "JobId=$job" Nice=0 </dev/null && printf '%s\n' "job $job: nice $nice to 0"
  done
  ;;
*) printf '%s\n' "usage: sh $0 [show | remove]" >&2; exit 2 ;;
esac
