{{ config(materialized='incremental', unique_key='id') }}
select id, name, amount from {{ ref('orders') }}
{% if is_incremental() %} where id >= 2 {% endif %}
