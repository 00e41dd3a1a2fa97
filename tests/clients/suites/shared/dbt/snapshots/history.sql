{% snapshot history %}
{{ config(target_schema=target.schema, unique_key='id', strategy='check', check_cols=['name', 'amount']) }}
select id, name, amount from {{ ref('raw_orders') }}
{% endsnapshot %}
