# Two commands are enough: `make run` and `make test`. Everything else is a part of them or a longer programme.
.PHONY: help run test check compiled demo bench bench-spark oracle interop wire crash churn client-seeds damage mutants once cluster official judges apache-tests hostile lock proto clean
DEV = python3 tools/dev.py

help:       ; @$(DEV) help
run:        ; @$(DEV) run $(ARGS)
test:       ; @$(DEV) test
check:      ; @$(DEV) check
compiled:   ; @$(DEV) compiled $(ARGS)
demo:       ; @$(DEV) demo $(ARGS)
bench:      ; @$(DEV) bench $(ARGS)
bench-spark: ; @$(DEV) bench-spark $(ARGS)
oracle:     ; @$(DEV) oracle $(ARGS)
official:   ; @$(DEV) official $(ARGS)
judges:     ; @$(DEV) judges $(ARGS)
apache-tests: ; @$(DEV) apache-tests $(ARGS)
wire:       ; @$(DEV) wire $(ARGS)
interop:    ; @$(DEV) interop $(ARGS)
hostile:    ; @$(DEV) hostile $(ARGS)
crash:      ; @$(DEV) crash $(if $(ROUNDS),--rounds $(ROUNDS))
churn:      ; @$(DEV) churn
client-seeds: ; @$(DEV) client-seeds $(ARGS)
damage:     ; @$(DEV) damage $(ARGS)
mutants:    ; @$(DEV) mutants $(ARGS)
once:       ; @$(DEV) once $(ARGS)
cluster:    ; @$(DEV) cluster $(ARGS)
lock:       ; @$(DEV) lock
proto:      ; @$(DEV) proto
clean:      ; @$(DEV) clean
