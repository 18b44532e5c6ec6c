/* dlsym and dlvsym: ask the resolver, then either return its answer or jump to the real function
 * with the program's arguments and return address, by which glibc knows the caller. */
        .text

        .macro STUB name, resolver, caller
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        pushq   %rdx
        .cfi_adjust_cfa_offset 8
        movq    24(%rsp), %\caller
        call    \resolver
        movq    %rax, %r11
        movq    %rdx, %r10
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        testq   %r10, %r10
        jnz     1f
        jmp     *%r11
1:      movq    %r11, %rax
        ret
        .cfi_endproc
        .size   \name, .-\name
        .endm

        .hidden doors_resolve_dlsym
        .hidden doors_resolve_dlvsym
        STUB    dlsym, doors_resolve_dlsym, rdx
        STUB    dlvsym, doors_resolve_dlvsym, rcx

        .section .note.GNU-stack, "", @progbits
