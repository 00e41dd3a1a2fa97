{{ config(materialized='incremental') }}
select id, name from {{ ref('orders') }}
{% if is_incremental() %} where id >= 3 {% endif %}
