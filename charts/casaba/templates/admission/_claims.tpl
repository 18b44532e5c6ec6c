{{/*
Of all requests and alternatives that name our class, what the expression finds wrong: texts that
are joined, and empty where all is well. The expression is about `f` and yields a text.
*/}}
{{- define "casaba.offenders" -}}
variables.forms.map(list, list.map(f, {{ . }}).filter(text, text != '').join(', ')).filter(text, text != '').join(', ')
{{- end }}

{{/* The same for the parameters `p` of each config entry for our driver. */}}
{{- define "casaba.wrongParameters" -}}
variables.parameters.map(p, {{ . }}).filter(text, text != '').join(', ')
{{- end }}
