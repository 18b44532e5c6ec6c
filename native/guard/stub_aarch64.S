/* As stub_x86_64.S. */
        .text

        .macro STUB name, resolver, caller
        .globl  \name
        .type   \name, %function
        .p2align 4
\name:
        .cfi_startproc
        hint    #34                     /* bti c */
        stp     x29, x30, [sp, #-48]!
        .cfi_def_cfa_offset 48
        .cfi_offset x29, -48
        .cfi_offset x30, -40
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        str     x2, [sp, #32]
        mov     \caller, x30
        bl      \resolver
        mov     x16, x0
        mov     x17, x1
        ldp     x0, x1, [sp, #16]
        ldr     x2, [sp, #32]
        ldp     x29, x30, [sp], #48
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        cbnz    x17, 1f
        br      x16
1:      mov     x0, x16
        ret
        .cfi_endproc
        .size   \name, .-\name
        .endm

        .hidden doors_resolve_dlsym
        .hidden doors_resolve_dlvsym
        STUB    dlsym, doors_resolve_dlsym, x2
        STUB    dlvsym, doors_resolve_dlvsym, x3

        .section .note.GNU-stack, "", %progbits
